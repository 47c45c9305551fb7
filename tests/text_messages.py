"""Messages whose body is a word: made, and read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogwork.amqp.message import Data, Sections, decode_sections, encode_sections

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peers import Arrival


def message(text: str, **sections: Any) -> bytes:
    return encode_sections(Sections(body=Data([text.encode()]), **sections))


def text_of(data: bytes) -> str:
    body = decode_sections(data).body
    assert isinstance(body, Data)
    return body.parts[0].decode()


def texts(arrivals: Iterable[Arrival]) -> list[str]:
    return [text_of(each.message) for each in arrivals]
