"""What a message says of its death."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import pytest

from cogwork.amqp.codec import encode
from cogwork.amqp.errors import AmqpError
from cogwork.amqp.message import (
    Data,
    Header,
    Properties,
    Sections,
    decode_sections,
    encode_sections,
)
from cogwork.amqp.outcomes import Rejected
from cogwork.amqp.types import Symbol, Timestamp, UInt, ULong, ms_from_datetime
from cogwork.plugin import dead_letters
from cogwork.plugin.dead_letters import (
    COUNT,
    FIRST_REASON,
    FIRST_SOURCE,
    FIRST_TIME,
    REASON,
    SOURCE,
    as_moved,
    dead_letter_id,
    origin_of,
    revived,
)

DIED = datetime(2026, 11, 28, 6, 0, 0, 5000, UTC)
DIED_MS = ms_from_datetime(DIED)

dead_letter = partial(dead_letters.dead_letter, died_ms=DIED_MS)

BARE = encode_sections(Sections(properties=Properties(message_id="m"), body=Data([b"x"])))
BROKEN = encode(
    Rejected(
        error=AmqpError(condition=Symbol("app:broken"), description="no such customer")
    ).to_described()
)


def test_a_dead_letter_says_why_and_from_where() -> None:
    letter = dead_letter(BARE, "work/a", "rejected", BROKEN, 3)
    assert decode_sections(letter).message_annotations == {
        "x-opt-dead-letter-reason": "rejected",
        "x-opt-dead-letter-source": "work/a",
        "x-opt-dead-letter-error": "app:broken: no such customer",
        "x-opt-dead-letter-failures": 3,
        "x-opt-dead-letter-count": 1,
        "x-opt-first-dead-letter-source": "work/a",
        "x-opt-first-dead-letter-reason": "rejected",
        "x-opt-first-dead-letter-time": DIED,
    }
    assert letter.endswith(BARE)


def test_a_dead_letter_that_may_be_sent_again_says_which_it_is() -> None:
    letter = dead_letter(BARE, "work/a", "rejected", None, 0, letter=dead_letter_id("work/a", 7, 8))
    assert decode_sections(letter).delivery_annotations == {
        "x-opt-dead-letter-id": dead_letter_id("work/a", 7, 8)
    }
    assert letter.endswith(BARE)


def test_dead_letters_of_others_are_others() -> None:
    items = [("work/a", 7, 8), ("work/a", 7, 9), ("work/a", 6, 8), ("work/b", 7, 8)]
    assert len({dead_letter_id(*each) for each in items}) == len(items)


def test_it_says_how_often_it_has_died() -> None:
    letter = BARE
    for source in ("work/a", "queue/later", "work/a"):
        letter = dead_letter(letter, source, "expired", None, 0)
    annotations = decode_sections(letter).message_annotations or {}
    assert annotations[COUNT] == 3
    assert revived(letter) == BARE


def annotations_of(letter: bytes) -> dict[object, object]:
    said = decode_sections(letter).message_annotations or {}
    return dict(said.items())


def test_the_first_death_stays_beside_the_last() -> None:
    letter = dead_letter(BARE, "work/a", "in-doubt", None, 0)
    for source, reason in (("queue/later", "expired"), ("work/a", "rejected")):
        letter = dead_letter(letter, source, reason, None, 1, died_ms=DIED_MS + 60_000)
    said = annotations_of(letter)
    assert (said[SOURCE], said[REASON], said[COUNT]) == ("work/a", "rejected", 3)
    first = (said[FIRST_SOURCE], said[FIRST_REASON], said[FIRST_TIME])
    assert first == ("work/a", "in-doubt", DIED)
    assert revived(letter) == BARE, "whose next death is its first"
    assert annotations_of(as_moved(letter))[FIRST_TIME] == DIED


def test_a_dead_letter_of_an_earlier_version_says_the_death_that_it_knows() -> None:
    known: dict[Symbol | ULong, object] = {SOURCE: "work/a", REASON: "rejected", COUNT: UInt(1)}
    letter = encode_sections(Sections(message_annotations=known, body=Data([b"x"])))
    said = annotations_of(dead_letter(letter, "queue/later", "expired", None, 0))
    assert (said[FIRST_SOURCE], said[FIRST_REASON]) == ("work/a", "rejected")
    assert (said[SOURCE], said[REASON]) == ("queue/later", "expired")
    assert FIRST_TIME not in said


@pytest.mark.parametrize("time", ["yesterday", None, 7, Timestamp(2**62)])
def test_what_a_sender_says_of_its_first_death_does_no_harm(time: object) -> None:
    forged: dict[Symbol | ULong, object] = {FIRST_SOURCE: 7, FIRST_REASON: None, FIRST_TIME: time}
    message = encode_sections(Sections(message_annotations=forged, body=Data([b"x"])))
    said = annotations_of(dead_letter(message, "work/a", "expired", None, 0))
    assert (said[FIRST_SOURCE], said[FIRST_REASON], said[FIRST_TIME]) == ("work/a", "expired", DIED)
    forged |= {FIRST_SOURCE: "queue/b", FIRST_REASON: "rejected"}
    message = encode_sections(Sections(message_annotations=forged, body=Data([b"x"])))
    said = annotations_of(dead_letter(message, "work/a", "expired", None, 0))
    assert (said[FIRST_SOURCE], said[FIRST_REASON]) == ("queue/b", "rejected")
    assert said.get(FIRST_TIME) == (time if isinstance(time, Timestamp) else None)


@pytest.mark.parametrize("said", [UInt(2**32 - 1), "7", -1, True])
def test_what_a_sender_says_of_its_deaths_does_no_harm(said: object) -> None:
    annotations: dict[Symbol | ULong, object] = {COUNT: said}
    message = encode_sections(Sections(message_annotations=annotations, body=Data([b"x"])))
    letter = dead_letter(message, "work/a", "expired", None, 0)
    counted = (decode_sections(letter).message_annotations or {})[COUNT]
    assert counted == (2**32 - 1 if isinstance(said, UInt) else 1)


def test_it_comes_back_as_it_was() -> None:
    letter = dead_letter(BARE, "work/a", "in-doubt", None, 0)
    assert origin_of(letter) == "work/a"
    assert revived(letter) == BARE
    assert origin_of(BARE) is None


def test_other_annotations_stay_and_what_would_hide_it_goes() -> None:
    message = encode_sections(
        Sections(
            header=Header(durable=True, ttl=UInt(5)),
            delivery_annotations={Symbol("hop"): 1},
            message_annotations={Symbol("x-opt-delivery-delay"): 9, Symbol("mine"): "kept"},
            body=Data([b"x"]),
        )
    )
    sections = decode_sections(revived(dead_letter(message, "work/a", "expired", None, 0)))
    assert sections.header == Header(durable=True)
    assert sections.delivery_annotations == {"hop": 1}
    assert sections.message_annotations == {"mine": "kept"}


def test_what_is_no_message_passes_as_it_is() -> None:
    assert dead_letter(b"\xff\xff", "work/a", "expired", b"\x00", 0) == b"\xff\xff"
    assert origin_of(b"\xff\xff") is None


def test_what_is_described_by_what_compares_with_nothing_passes_as_it_is() -> None:
    signaling = b"\x00\x74\x7e\x00\x00\x00\x40"  # a decimal, and no number
    for message in (signaling, encode(Header(priority=3).to_described()) + signaling):
        letter = dead_letter(message, "work/a", "rejected", signaling, 1)
        assert letter.endswith(signaling)
        assert origin_of(letter) == "work/a"
        assert revived(letter) == message


def test_an_outcome_without_an_error_says_nothing() -> None:
    letter = dead_letter(BARE, "work/a", "rejected", encode(Rejected().to_described()), 0)
    assert "x-opt-dead-letter-error" not in (decode_sections(letter).message_annotations or {})


def test_a_body_is_not_looked_into() -> None:
    """It may be as long as a message, and nothing of it is to be said."""
    unreadable = b"\x00\x53\x77\xa1\x01\xff"
    letter = dead_letter(unreadable, "queue/a", "expired", None, 0)
    assert letter.endswith(unreadable)
    assert origin_of(letter) == "queue/a"


def test_what_is_moved_says_so_asks_for_no_delay_and_keeps_all_else() -> None:
    sections = Sections(
        header=Header(durable=True, ttl=UInt(5)),
        delivery_annotations={Symbol("hop"): 1},
        message_annotations={Symbol("x-opt-delivery-delay"): 9, Symbol("mine"): "kept"},
        body=Data([b"x"]),
    )
    moved = as_moved(encode_sections(sections))
    sections.message_annotations = {Symbol("mine"): "kept", Symbol("x-opt-moved"): True}
    assert decode_sections(moved) == sections
    assert as_moved(moved) == moved
    assert as_moved(b"no message") == b"no message"
    letter = as_moved(dead_letter(BARE, "work/a", "expired", None, 0))
    assert origin_of(letter) == "work/a"
    assert decode_sections(revived(letter)).message_annotations == {"x-opt-moved": True}
