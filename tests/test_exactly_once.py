"""The short form of tests/exactly_once.py."""

import random

from exactly_once import Rounds
from stores import Postgres


def test_writes_are_there_once_whatever_is_killed(make_pool):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rounds = Rounds(make_pool(nodes=2), writes=20, seed=seed).run()
    outcomes = rounds.check()
    print(f"kills {dict(rounds.kills)}, outcomes {dict(outcomes)}")
    assert sum(rounds.kills.values()) > 3


def test_writes_are_there_once_whatever_is_killed_with_a_catalog_server(make_pool):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    with Postgres() as postgres:
        rounds = Rounds(make_pool(nodes=2, flags=postgres.flags()), writes=20, seed=seed, postgres=postgres).run()
        outcomes = rounds.check()
    print(f"kills {dict(rounds.kills)}, outcomes {dict(outcomes)}")
    assert sum(rounds.kills.values()) > 3
