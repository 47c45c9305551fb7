"""Keywords of what sends a message: those that neither it nor a message has are told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork import Message
from cogwork.client.fields import message_of
from cogwork.client.publishing.publisher import Publisher
from cogwork.client.streams.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("name", ["publish", "request"])
@pytest.mark.parametrize("body", [1, Message(1)], ids=["body", "message"])
def test_a_keyword_that_is_misspelt_is_told_with_the_one_that_is_meant(
    name: str, body: object
) -> None:
    send: Any = getattr(cogwork.connect("amqp://localhost"), name)
    wrong = rf"^{name}\(\) got an unexpected keyword argument 'timeout': did you mean 'timeout_s'\?"
    with pytest.raises(TypeError, match=wrong):
        asyncio.run(send("service/a", body, timeout=1))
    with pytest.raises(TypeError, match=r"'ttl': did you mean 'ttl_s'\?"):
        asyncio.run(send("service/a", body, subject="s", ttl=1))


@pytest.mark.parametrize("sending", [Publisher.post, Stream.publish])
def test_what_has_no_such_option_does_not_offer_it(sending: Callable[..., object]) -> None:
    wrong: dict[str, Any] = {"timeout": 1}
    with pytest.raises(TypeError, match=r"'timeout': there are subject, .*") as found:
        message_of(1, sending, **wrong)
    assert "timeout_s" not in str(found.value)


def test_a_message_that_has_its_fields_takes_no_more() -> None:
    with pytest.raises(TypeError, match="set subject, ttl_s on the Message"):
        message_of(Message(1), Publisher.send, subject="s", ttl_s=1)


def test_a_value_of_a_wrong_type_is_told_as_it_is() -> None:
    wrong: dict[str, Any] = {"subject": "s", "ttl_s": []}
    with pytest.raises(TypeError) as found:
        message_of(1, Publisher.send, **wrong)
    assert "unexpected keyword" not in str(found.value)
