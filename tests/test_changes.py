"""Members come, go, restart, lose their volume and change weight while people read: the short form of `./dev warm-pool --changes`."""

import pytest

from pool_changes import Changes, is_good, text_of
from warm_pool import WarmPool


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    with WarmPool(tmp_path_factory.mktemp("changes"), 8, 20_000, delay_s=0.002) as warm:
        yield {row["change"]: row for row in Changes(warm, readers=2).all()}


def test_no_change_fails_a_read_or_fetches_more_than_has_moved(rows):
    for row in rows.values():
        assert is_good(row), (text_of(row), row["failed"][:3])


def test_a_joiner_takes_its_own_tables_and_no_others(rows):
    joined = rows["a node joins (3 → 4)"]
    assert joined["took"] == set(joined["moved"]), joined


def test_a_rolling_restart_moves_nothing_and_loses_no_home(rows):
    restart = rows["a rolling restart of all"]
    assert restart["moved"] == [] and restart["lost"] == []
