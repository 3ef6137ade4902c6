"""The short form of tests/writers_readers.py."""

from writers_readers import Clients


def test_writers_and_readers_at_once(make_pool):
    clients = Clients(make_pool(nodes=2), writers=6, readers=6).prepare()
    clients.run(seconds=6, writers=True)
    clients.check()
    assert len(clients.read_s) > 5 and len(clients.write_s) > 5
