"""SASL frames and PLAIN."""

from __future__ import annotations

import pytest

from cogwork.amqp.codec import encode
from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.performatives import Close
from cogwork.amqp.sasl import (
    ANONYMOUS,
    PLAIN,
    Plain,
    SaslChallenge,
    SaslCode,
    SaslFrame,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    build_plain,
    decode_sasl,
    encode_sasl,
    parse_plain,
)


@pytest.mark.parametrize(
    "frame",
    [
        SaslMechanisms(sasl_server_mechanisms=(PLAIN, ANONYMOUS)),
        SaslMechanisms(sasl_server_mechanisms=(PLAIN,)),
        SaslInit(mechanism=PLAIN, initial_response=build_plain("u", "p"), hostname="h"),
        SaslChallenge(challenge=b"?"),
        SaslResponse(response=b"!"),
        SaslOutcome(code=SaslCode.AUTH),
    ],
)
def test_each_frame_survives(frame: SaslFrame) -> None:
    assert decode_sasl(encode_sasl(frame)) == frame


@pytest.mark.parametrize(
    "body",
    [
        encode(5),
        encode(Close().to_described()),
        encode_sasl(SaslOutcome(code=SaslCode.OK)) + b"\x40",
    ],
)
def test_other_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_sasl(body)


def test_plain_there_and_back() -> None:
    assert build_plain("guest", "pass wörd") == "\0guest\0pass wörd".encode()
    assert parse_plain(build_plain("u", "p", "other")) == Plain("other", "u", "p")
    with pytest.raises(ValueError, match="NUL"):
        build_plain("u\0v", "p")


@pytest.mark.parametrize("response", [b"", b"u\0p", b"\0u\0p\0", b"\0\0p", b"\0u\0\xff"])
def test_a_malformed_plain_response_is_refused(response: bytes) -> None:
    with pytest.raises(ProtocolError, match="separated by NUL"):
        parse_plain(response)
