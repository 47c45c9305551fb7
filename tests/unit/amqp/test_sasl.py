"""SASL frames and PLAIN."""

from __future__ import annotations

import pytest

from cogwork.amqp.codec import encode
from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.performatives import Close
from cogwork.amqp.sasl import (
    ANONYMOUS,
    EXTERNAL,
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
    refusal_of,
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


@pytest.mark.parametrize(
    ("init", "code", "says"),
    [
        (
            SaslInit(mechanism=PLAIN, initial_response=build_plain("bob", "secret")),
            SaslCode.AUTH,
            "there is no user 'bob', or the password is wrong (AUTH)",
        ),
        (SaslInit(mechanism=PLAIN), SaslCode.AUTH, "there is no user '', or the password is wrong"),
        (SaslInit(mechanism=EXTERNAL), SaslCode.AUTH, "no user by the name in the certificate"),
        (SaslInit(mechanism=ANONYMOUS), SaslCode.AUTH, "does not let anybody in by ANONYMOUS"),
        (SaslInit(mechanism=PLAIN), SaslCode.SYS_TEMP, "try again later (SYS_TEMP)"),
        (SaslInit(mechanism=PLAIN), SaslCode.SYS_PERM, "it cannot check (SYS_PERM)"),
    ],
)
def test_a_refusal_says_what_may_be_wrong(init: SaslInit, code: SaslCode, says: str) -> None:
    told = refusal_of(init, code)
    assert told.startswith("the server refused the authentication: ")
    assert says in told
    assert "secret" not in told
