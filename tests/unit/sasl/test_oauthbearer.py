"""OAUTHBEARER without a network: what both sides say, and what is no message of it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.sasl import OAUTHBEARER
from cogwork.sasl.mechanisms import MECHANISMS
from cogwork.sasl.sides import (
    Challenge,
    ClientContext,
    Failure,
    Grant,
    LoginBusyError,
    SaslError,
    ServerContext,
    Success,
    TokenError,
)

if TYPE_CHECKING:
    from cogwork.sasl.verifier import Keys

MECHANISM = MECHANISMS[OAUTHBEARER]
GRANT = Grant("a=n,n", ("g",), 1e12)


class Users:
    """Takes one token."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def check_token(self, token: str) -> Grant:
        if self.error is not None:
            raise self.error
        if token != "to.ke-n":
            raise TokenError("it has expired")
        return GRANT


async def never(_work: object) -> Keys:
    raise AssertionError


def client(token: str | None = "to.ke-n", **fields: Any) -> Any:
    fields.setdefault("is_private", True)
    return MECHANISM.client(ClientContext(never, token=token, **fields))


def server(error: Exception | None = None) -> Any:
    return MECHANISM.server(ServerContext(Users(error), (OAUTHBEARER,)))  # type: ignore[arg-type]  # asked for tokens alone


def step(side: Any, response: bytes | None) -> Any:
    found = side.respond(response)
    return asyncio.run(found()) if callable(found) else found


def test_a_token_is_said_as_the_rfc_has_it() -> None:
    assert client().first() == b"n,,\x01auth=Bearer to.ke-n\x01\x01"
    assert client(user="a=n,n").first() == b"n,a=a=3Dn=2Cn,\x01auth=Bearer to.ke-n\x01\x01"


def test_both_sides_agree() -> None:
    assert step(server(), client().first()) == Success("a=n,n", grant=GRANT)
    said = client(user="a=n,n").first()
    assert step(server(), said) == Success("a=n,n", grant=GRANT)
    assert MECHANISM.user_of(said) == "a=n,n"


def test_a_client_that_waits_to_be_asked_is_asked_once() -> None:
    side = server()
    assert step(side, None) == Challenge(b"")
    assert step(side, client().first()) == Success("a=n,n", grant=GRANT)


def test_the_rfcs_own_example_is_read() -> None:
    said = b"n,a=a=3Dn=2Cn,\x01host=server.example.com\x01port=143\x01auth=bearer  to.ke-n\x01\x01"
    assert step(server(), said) == Success("a=n,n", grant=GRANT)


def test_a_refusal_comes_after_an_error_in_json_and_says_no_reason() -> None:
    side, mine = server(), client("other")
    told = step(side, mine.first())
    assert json.loads(told.data) == {"status": "invalid_token"}
    assert mine.respond(told.data) == b"\x01"
    assert step(side, b"\x01") == Failure("token refused: it has expired", "")
    with pytest.raises(SaslError, match="asks again"):
        mine.respond(b"{}")
    with pytest.raises(SaslError, match="just refused"):
        mine.finish(None)


def test_nobody_acts_as_somebody_else() -> None:
    side = server()
    assert isinstance(step(side, client(user="bob").first()), Challenge)
    assert step(side, b"\x01") == Failure("it wants to act as 'bob'", "a=n,n")


def test_what_cannot_be_checked_now_is_refused_for_now() -> None:
    found = step(server(LoginBusyError("no keys")), client().first())
    assert found == Failure("no keys", "", is_temporary=True)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer t\x01",
        b"n,,\x01auth=Basic t\x01\x01",
        b"n,,\x01auth=Bearer t\x01auth=Bearer u\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer t\x01\x01",
        b"n,b=x,\x01auth=Bearer t\x01\x01",
        b"n,a=x,y\x01auth=Bearer t\x01\x01",
        b"n\x01auth=Bearer t\x01\x01",
        b"n,,\x01" * 10_000,
    ],
)
def test_what_is_no_message_breaks_the_protocol(said: bytes) -> None:
    with pytest.raises(ProtocolError, match="OAUTHBEARER takes"):
        server().respond(said)
    assert MECHANISM.user_of(said) is None


def test_a_token_goes_only_where_nobody_reads_along() -> None:
    assert client(None) is None
    assert client(is_private=False) is None
    assert client(is_private=False, chosen=(OAUTHBEARER,)) is not None
    assert "to.ke-n" not in repr(ClientContext(never, token="to.ke-n"))


def test_who_has_a_token_is_never_anonymous() -> None:
    context = ClientContext(never, token="to.ke-n", is_private=True, has_certificate=True)
    able = [each.name for each in MECHANISMS.values() if each.client(context) is not None]
    assert able == [OAUTHBEARER]
