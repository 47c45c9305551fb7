"""Dead letters that come more than once: a queue takes each once, whatever became of it."""

from __future__ import annotations

import pytest
from kept_queues import KeptQueue

from cogwork.amqp.message import Annotations, decode_sections
from cogwork.amqp.outcomes import Accepted
from cogwork.amqp.types import Symbol
from cogwork.dataplane.queue.dead_letter_dedup import DeadLetterDedup

REMEMBERED_MAX = 16_384


def named(key: object) -> Annotations:
    return {Symbol("hop"): 1, Symbol("x-opt-dead-letter-id"): key}


def dead_letter_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def sent(queue: KeptQueue, text: str, key: object) -> KeptQueue:
    queue.send(text, delivery_annotations=named(key))
    return queue


def test_a_dead_letter_is_taken_once_and_accepted_each_time() -> None:
    queue = sent(sent(KeptQueue(), "a", dead_letter_id(1)), "a", dead_letter_id(1))
    queue.commit()
    queue.publisher.hear()
    assert queue.texts() == ["a"]
    assert queue.count("duplicates") == 1
    settled = [(d.first, d.last, d.state) for d in queue.publisher.dispositions]
    assert [state for _, _, state in settled] == [Accepted()] * len(settled)
    assert settled[-1][1] == 1


def test_dead_letters_with_other_ids_are_others() -> None:
    queue = sent(sent(KeptQueue(), "a", dead_letter_id(1)), "a", dead_letter_id(2))
    assert queue.texts() == ["a", "a"]


@pytest.mark.parametrize("others", [{}, {"hop": 2}])
def test_an_id_that_a_message_of_others_has_hides_no_dead_letter(others: dict[str, object]) -> None:
    """Whoever may send to the queue can write such a section, too."""
    queue = sent(KeptQueue(), "forged", dead_letter_id(1))
    queue.send("a", delivery_annotations=named(dead_letter_id(1)), message_annotations=others)
    queue.send("a", delivery_annotations=named(dead_letter_id(1)), message_annotations={"hop": 3})
    assert queue.texts() == ["forged", "a"]
    again = sent(queue.restarted(), "a", dead_letter_id(1))
    assert again.texts() == ["forged", "a"]


@pytest.mark.parametrize("key", [b"short", b"x" * 17, "a" * 16, None, 7])
def test_what_is_no_id_says_nothing(key: object) -> None:
    queue = sent(sent(KeptQueue(), "a", key), "b", key)
    assert queue.texts() == ["a", "b"]


def test_what_is_kept_does_not_say_which_dead_letter_it_is() -> None:
    queue = KeptQueue()
    queue.send("a", delivery_annotations=named(dead_letter_id(1)), message_annotations={"kept": 1})
    ((message, _),) = queue.store.peek(10)
    sections = decode_sections(message)
    assert sections.delivery_annotations is None
    assert sections.message_annotations == {"kept": 1}
    assert message == queue.message("a", message_annotations={"kept": 1})


def test_a_dead_letter_is_known_when_it_is_gone_and_after_a_restart() -> None:
    queue = sent(KeptQueue(), "a", dead_letter_id(1))
    queue.store.purge()
    again = sent(queue.restarted(), "a", dead_letter_id(1))
    assert again.texts() == []
    assert sent(again.restarted(), "a", dead_letter_id(1)).texts() == []


def test_a_dead_letter_is_known_after_its_queue_was_written_anew() -> None:
    queue = sent(KeptQueue(), "a", dead_letter_id(1))
    again = queue.checkpointed().restarted()
    assert sent(again, "a", dead_letter_id(1)).texts() == ["a"]


def test_a_dead_letter_that_was_not_durable_is_taken_again() -> None:
    queue = sent(KeptQueue(), "a", dead_letter_id(1))
    again = queue.restarted(flushes=False)
    assert sent(again, "a", dead_letter_id(1)).texts() == ["a"]


def test_a_dead_letter_and_its_id_stand_in_one_record() -> None:
    queue = KeptQueue()
    for number in range(300):
        sent(queue, "x" * 30_000, dead_letter_id(number))
    queue.commit()
    assert len(queue.records) > 1
    for count, _ in enumerate(queue.records):
        image = queue.image(count)
        assert len(image.items) == len(image.dead_letter_dedup.remembered())


def test_who_has_the_items_elsewhere_knows_no_dead_letter() -> None:
    queue = sent(KeptQueue(), "a", dead_letter_id(1))
    queue.store.clear()
    assert sent(queue, "a", dead_letter_id(1)).texts() == ["a"]


def test_what_a_container_moves_is_taken_whatever_its_id() -> None:
    queue = sent(KeptQueue(), "a", dead_letter_id(1))
    message = queue.message("a", delivery_annotations=named(dead_letter_id(1)))
    assert queue.store.put(message)
    assert queue.texts() == ["a", "a"]


def test_the_oldest_are_forgotten() -> None:
    dead_letter_dedup = DeadLetterDedup()
    for number in range(REMEMBERED_MAX + 3):
        dead_letter_dedup.remember(dead_letter_id(number))
    remembered = dead_letter_dedup.remembered()
    assert len(remembered) == REMEMBERED_MAX
    assert remembered[0] == dead_letter_id(3)
    assert remembered[-1] == dead_letter_id(REMEMBERED_MAX + 2)
