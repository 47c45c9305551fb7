"""A client's choice of mechanism, and what of its properties has to be so."""

from __future__ import annotations

from typing import Any

import pytest

from cogwork.amqp.sasl import ANONYMOUS, EXTERNAL, OAUTHBEARER, PLAIN
from cogwork.amqp.types import Symbol
from cogwork.amqp091.content import BasicProperties, Content
from cogwork.amqp091.errors import ProtocolError
from cogwork.amqp091.methods import ConnectionStartOk
from cogwork.amqp091.tables import encode_table
from cogwork.container.amqp091.login import init_of, mechanisms_offered
from cogwork.container.amqp091.published import check_properties

LOOPBACK = (Symbol("SCRAM-SHA-256"), PLAIN, ANONYMOUS)
ELSEWHERE = (EXTERNAL, PLAIN)


def plain(user: str, password: str) -> ConnectionStartOk:
    return ConnectionStartOk(mechanism="PLAIN", response=f"\0{user}\0{password}".encode())


def amqplain(user: str, password: str) -> ConnectionStartOk:
    table = encode_table({"LOGIN": user, "PASSWORD": password})
    return ConnectionStartOk(mechanism="AMQPLAIN", response=table[4:])


def test_whoever_may_be_anonymous_is_offered_a_password() -> None:
    assert mechanisms_offered((ANONYMOUS,)) == b"ANONYMOUS PLAIN AMQPLAIN"
    assert mechanisms_offered(ELSEWHERE) == b"EXTERNAL PLAIN AMQPLAIN"
    assert mechanisms_offered((EXTERNAL,)) == b"EXTERNAL"
    assert mechanisms_offered((OAUTHBEARER,)) == b"OAUTHBEARER PLAIN AMQPLAIN"


@pytest.mark.parametrize("said", [plain("guest", "guest"), amqplain("guest", "guest")])
def test_guest_is_the_anonymous_user_where_there_is_one(said: ConnectionStartOk) -> None:
    assert init_of(said, LOOPBACK, has_guest=False).mechanism == ANONYMOUS
    assert init_of(said, LOOPBACK, has_guest=True).mechanism == PLAIN
    assert init_of(said, ELSEWHERE, has_guest=False).mechanism == PLAIN


def test_any_other_password_is_checked() -> None:
    for said in (plain("guest", "other"), amqplain("jo", "secret")):
        init = init_of(said, LOOPBACK, has_guest=False)
        assert init.mechanism == PLAIN
    assert init.initial_response == b"\0jo\0secret"


def test_a_password_that_is_a_token_is_taken_for_one_where_tokens_are_taken() -> None:
    token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.c2lnbmVk"
    for said in (plain("any", token), amqplain("any", token)):
        init = init_of(said, (*ELSEWHERE, OAUTHBEARER), has_guest=False)
        assert init.mechanism == OAUTHBEARER
        assert init.initial_response == f"n,,\1auth=Bearer {token}\1\1".encode()
        assert init_of(said, ELSEWHERE, has_guest=False).mechanism == PLAIN
    init = init_of(plain("any", "eyJ.no"), (*ELSEWHERE, OAUTHBEARER), has_guest=False)
    assert init.mechanism == PLAIN


def test_other_mechanisms_pass_as_they_are() -> None:
    said = ConnectionStartOk(mechanism="SCRAM-SHA-256", response=b"n,,n=jo,r=1")
    init = init_of(said, LOOPBACK, has_guest=False)
    assert (init.mechanism, init.initial_response) == ("SCRAM-SHA-256", b"n,,n=jo,r=1")


@pytest.mark.parametrize(
    "said",
    [
        ConnectionStartOk(mechanism="PLAIN", response=b"guest"),
        ConnectionStartOk(mechanism="AMQPLAIN", response=b"\x05LOGIN"),
        ConnectionStartOk(mechanism="AMQPLAIN", response=encode_table({"LOGIN": "jo"})[4:]),
        ConnectionStartOk(
            mechanism="AMQPLAIN",
            response=encode_table({"LOGIN": "\udcff", "PASSWORD": "x"})[4:],
        ),
    ],
)
def test_a_malformed_response_is_an_error_of_the_client(said: ConnectionStartOk) -> None:
    with pytest.raises(ProtocolError):
        init_of(said, LOOPBACK, has_guest=False)


def content(**properties: Any) -> Content:
    return Content.of(BasicProperties(**properties), b"")


def test_a_user_signs_with_its_own_name() -> None:
    check_properties(content(user_id="jo"), "jo")
    check_properties(content(user_id="guest"), None)
    with pytest.raises(ProtocolError, match="set to 'jo' but authenticated user was 'guest'"):
        check_properties(content(user_id="jo"), None)


@pytest.mark.parametrize("expiration", ["", "-1", "1.5", "soon", "\u0661"])
def test_an_expiration_is_digits(expiration: str) -> None:
    check_properties(content(expiration="0"), None)
    with pytest.raises(ProtocolError, match="invalid expiration"):
        check_properties(content(expiration=expiration), None)


@pytest.mark.parametrize("name", ["CC", "BCC"])
def test_copies_are_lists_of_keys(name: str) -> None:
    check_properties(content(headers={name: ["a", "b"]}), None)
    for wrong in ("a", [1], {"a": "b"}):
        with pytest.raises(ProtocolError, match=f'unacceptable_type_in_header,"{name}"'):
            check_properties(content(headers={name: wrong}), None)
