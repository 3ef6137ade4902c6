"""The short form of ./dev soak."""

import soak


def test_forty_seconds_of_mixed_load(tmp_path):
    with soak.make_pool(tmp_path / "pool") as pool:
        failures, figures = soak.Soak(pool, seconds=40, kill_every_s=15).run()
        print(figures)
        assert failures == []
        assert pool.stop()[0] == 0
