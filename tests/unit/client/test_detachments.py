"""What a client raises where a container ends its link."""

from __future__ import annotations

import copy
import pickle

import pytest

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.types import Symbol, ULong
from cogwork.client.errors import LinkDetached, RecordsLost, StreamTruncated, detachment

LOST = Symbol("cogwork:records-lost")
TRUNCATED = Symbol("cogwork:stream-truncated")


def ended(condition: Symbol, **info: object) -> LinkDetached:
    made = {Symbol(name): value for name, value in info.items()}
    return detachment("stream/a", AmqpError(condition=condition, description="so", info=made))


def test_lost_records_are_an_error_with_the_offset_to_read_on_from() -> None:
    error = ended(LOST, end=ULong(3))
    assert isinstance(error, RecordsLost)
    assert (error.address, error.end, error.description) == ("stream/a", 3, "so")
    assert str(error) == "stream/a: so (cogwork:records-lost)"


def test_a_stream_that_begins_later_is_an_error_with_its_first_offset() -> None:
    error = ended(TRUNCATED, first=ULong(7))
    assert isinstance(error, StreamTruncated)
    assert error.first == 7


@pytest.mark.parametrize("condition", [LOST, TRUNCATED, Condition.RESOURCE_DELETED])
def test_an_end_without_its_offset_is_one_like_others(condition: Symbol) -> None:
    error = ended(condition, other=ULong(7))
    assert type(error) is LinkDetached
    assert error.condition == condition


def test_they_can_be_copied_and_sent_to_another_process() -> None:
    error = ended(LOST, end=ULong(3))
    assert isinstance(error, RecordsLost)
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (other.address, other.end, other.condition) == ("stream/a", 3, LOST)
