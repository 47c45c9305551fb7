"""Whether a container has live traffic."""

from __future__ import annotations

from cogwork.pipeline.arrow.serving.traffic import (
    CONNECTION_FRAMES,
    LINK_FRAMES,
    LIVE_FRAMES,
    WATCH_S,
    Traffic,
)

LOOKS_A_SECOND = round(1 / WATCH_S)
LITTLE = LIVE_FRAMES // LOOKS_A_SECOND - 1
MUCH = LIVE_FRAMES // LOOKS_A_SECOND


def looks(per_look: list[tuple[int, int]], links: int = 0) -> list[bool]:
    """Look after so many more frames and connections each time."""
    traffic = Traffic()
    assert not traffic.is_live(1000, 10, links)
    frames, connections = 1000, 10
    found = []
    for more_frames, more_connections in per_look:
        frames += more_frames
        connections += more_connections
        found.append(traffic.is_live(frames, connections, links))
    return found


def test_few_frames_are_no_traffic_however_long_they_come() -> None:
    assert not any(looks([(LITTLE, 0)] * 50))


def test_many_frames_are_traffic_once_there_are_enough_of_them() -> None:
    found = looks([(MUCH, 0)] * 50)
    assert found.index(True) == LOOKS_A_SECOND - 1
    assert all(found[LOOKS_A_SECOND:])


def test_a_burst_is_traffic_for_a_second() -> None:
    found = looks([(LIVE_FRAMES, 0)] + [(0, 0)] * 20)
    assert found == [True] * LOOKS_A_SECOND + [False] * (21 - LOOKS_A_SECOND)


def test_those_who_connect_and_look_around_are_no_traffic() -> None:
    assert not any(looks([(3 * CONNECTION_FRAMES, 3)] * 50))


def test_traffic_is_seen_while_others_connect() -> None:
    assert all(looks([(CONNECTION_FRAMES + MUCH, 1)] * 50)[LOOKS_A_SECOND:])


def test_what_linked_containers_say_is_no_traffic() -> None:
    links = 5
    beats = links * LINK_FRAMES // LOOKS_A_SECOND
    assert not any(looks([(beats, 0)] * 50, links))
    assert all(looks([(beats + MUCH, 0)] * 50, links)[LOOKS_A_SECOND:])
