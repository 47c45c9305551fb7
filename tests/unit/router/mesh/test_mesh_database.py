"""What a container knows of all others: which of two tellings is the newer, and for how long."""

from __future__ import annotations

from adverts import advert, never

from cogwork.router.mesh.bounds import CONTAINERS_MAX, ROOM_S
from cogwork.router.mesh.database import Database, Verdict, supersedes


def test_newer_is_by_incarnation_then_sequence_then_content() -> None:
    ordered = [
        advert("x", 1),
        advert("x", 1, "a"),
        advert("x", 2),
        advert("x", 1, incarnation=2),
    ]
    for at, one in enumerate(ordered):
        for after, other in enumerate(ordered):
            assert supersedes(one, other) == (at > after)


def test_sequences_wrap() -> None:
    assert supersedes(advert("x", 1), advert("x", 2**32 - 1))
    assert not supersedes(advert("x", 2**32 - 1), advert("x", 1))


def test_what_is_offered_is_taken_where_it_is_news() -> None:
    database = Database(max_age_s=180)
    for offered, verdict in [
        (advert("x", 5, "a"), Verdict.NEW),
        (advert("x", 5, "a"), Verdict.KNOWN),
        (advert("x", 4), Verdict.OLD),
        (advert("x", 6, "a"), Verdict.REPEATED),
        (advert("x", 7), Verdict.NEW),
        (advert("x", 1, incarnation=2), Verdict.NEW),
        (advert("x", 9), Verdict.OLD),
        (advert("x", 1, incarnation=2**62), Verdict.REFUSED),
        (advert("y", 1, age_s=180), Verdict.OLD),
    ]:
        assert database.offer(offered, 0, never) is verdict
    assert set(database.records) == {"x"}


def test_what_is_not_repeated_ages_from_when_its_origin_sent_it() -> None:
    database = Database(max_age_s=180)
    database.offer(advert("x", age_s=100), 1000, never)
    database.offer(advert("y"), 1000, never)
    assert database.records["x"].aged(1010).age_s == 110
    assert database.expired(1079) == []
    assert database.expired(1080) == ["x"]


def test_a_full_database_makes_room_only_of_what_cannot_be_reached_for_some_time() -> None:
    database = Database(max_age_s=180)
    for at in range(CONTAINERS_MAX):
        database.offer(advert(f"x{at}"), at / 1000, never)
    assert database.offer(advert("y"), ROOM_S - 1, never) is Verdict.REFUSED
    assert database.offer(advert("y"), ROOM_S + 1, lambda _: True) is Verdict.REFUSED
    assert database.offer(advert("y"), ROOM_S + 1, never) is Verdict.NEW
    assert database.removed == ["x0"]
    assert len(database.records) == CONTAINERS_MAX
