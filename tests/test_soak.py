"""The short forms of ./dev soak."""

import soak
from soak_faults import Faults


def test_forty_seconds_of_mixed_load(tmp_path):
    with soak.make_pool(tmp_path / "pool") as pool:
        failures, figures = soak.Soak(pool, seconds=40, kill_every_s=15).run()
        print(figures)
        assert failures == []
        assert pool.stop()[0] == 0


def test_mixed_load_while_store_and_disks_fail(tmp_path):
    """Right answers or errors that say so, by both fronts."""
    seed = 7
    with Faults(tmp_path, seed, phase_s=(1.0, 2.5)) as faults, soak.make_pool(tmp_path / "pool", faults) as pool:
        failures, figures = soak.Soak(pool, seconds=25, kill_every_s=12, seed=seed, faults=faults).run()
        print(figures)
        assert failures == []
        assert pool.stop()[0] == 0
