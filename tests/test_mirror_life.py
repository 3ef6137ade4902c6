"""A few steps of a lake's random life, led by a pool and an outside client in turns: the short form of mirror_life.py."""

import pytest

from mirror_life import trial


@pytest.mark.parametrize(("catalog", "steps"), [("sqlite", 30), ("postgres", 20)])
def test_roost_answers_as_ducklake_does_after_each_step(tmp_path, catalog, steps):
    with trial(tmp_path, catalog, seed=5) as made:
        made.run(steps)
        assert not made.by_roost_alone
        assert sum(made.refused.values()) * 4 < sum(made.counts[who] for who in ("pg", "http", "outside"))
        assert min(made.counts[who] for who in ("pg", "http", "outside")) > 0
