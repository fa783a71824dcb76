from tests.forge.conftest import sound


def test_a_clean(place):
    n = place.pull(sound())
    print(place.both(n))
    print(place.status(n), place.server.labels(n))
    print(place.server.requests)
    k = len(place.server.writes())
    place.both(n)
    assert len(place.server.writes()) == k
    assert 0
