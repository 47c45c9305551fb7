"""SCRAM, both sides: against the RFC, against another library, against broken messages."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramClient, ScramMechanism

from cogwork.amqp.types import Symbol
from cogwork.sasl import scram
from cogwork.sasl.mechanisms import MECHANISMS, SCRAM
from cogwork.sasl.sides import (
    Challenge,
    ClientContext,
    Failure,
    SaslError,
    ServerContext,
    Success,
)
from cogwork.sasl.verifier import (
    HASHES,
    ITERATIONS_MAX,
    Keys,
    Verifier,
    decoy,
    make_verifier,
    parse_verifier,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.sasl.sides import Grant, ServerSide, Step

SHA256, SHA256_PLUS = Symbol("SCRAM-SHA-256"), Symbol("SCRAM-SHA-256-PLUS")
END_POINT = bytes(range(32))
EXAMPLE = (
    "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$"
    "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
)
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


class Users:
    """One user."""

    def __init__(self, name: str, *verifiers: Verifier) -> None:
        self.name = name
        self.verifiers = {each.hash_name: each for each in verifiers}

    def has(self, name: str) -> bool:
        return name == self.name

    async def check(self, name: str, password: str, source: str) -> bool:
        return False

    async def check_token(self, token: str) -> Grant:
        raise NotImplementedError

    def verifier(self, hash_name: str, name: str) -> tuple[Verifier, str | None]:
        if name == self.name:
            return self.verifiers[hash_name], name
        return decoy(hash_name, name, 4096, b"secret"), None


async def at_once(work: Callable[[], Keys]) -> Keys:
    return work()


def client_context(user: str = "user", password: str = "pencil", **fields: Any) -> ClientContext:
    return ClientContext(at_once, user=user, password=password, **fields)


def server(mechanism: Symbol = SHA256, users: Users | None = None, **fields: Any) -> ServerSide:
    known = users or Users("user", parse_verifier(EXAMPLE))
    context = ServerContext(known, **{"offered": (SHA256,), "end_point": END_POINT, **fields})
    return MECHANISMS[mechanism].server(context)


def step(side: ServerSide, response: bytes | None) -> Step:
    return cast("Step", side.respond(response))


def answer(side: Any, challenge: bytes) -> bytes:
    found = side.respond(challenge)
    return found if isinstance(found, bytes) else asyncio.run(found())


def run(client: Any, side: ServerSide) -> Success | Failure:
    """Let two sides talk to the end."""
    asked = step(side, client.first())
    if isinstance(asked, Failure):
        return asked
    assert isinstance(asked, Challenge)
    ended = step(side, answer(client, asked.data))
    assert isinstance(ended, (Success, Failure))
    if isinstance(ended, Success):
        client.finish(ended.data)
    return ended


@pytest.fixture
def _example(monkeypatch: pytest.MonkeyPatch) -> None:
    nonces = iter([CLIENT_NONCE, SERVER_NONCE])
    monkeypatch.setattr(scram, "make_nonce", lambda: next(nonces))


@pytest.mark.usefixtures("_example")
def test_the_exchange_of_the_rfc() -> None:
    client: Any = MECHANISMS[SHA256].client(client_context())
    side = server()
    assert client.first() == b"n,,n=user,r=" + CLIENT_NONCE.encode()
    asked = step(side, client.first())
    assert asked == Challenge(
        f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    )
    final = answer(client, asked.data)
    assert (
        final
        == (
            f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        ).encode()
    )
    proof = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert step(side, final) == Success("user", proof)
    client.finish(proof)


NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=20)


@pytest.mark.parametrize("name", SCRAM)
@settings(max_examples=10, deadline=None)
@given(user=NAMES, password=NAMES)
def test_another_librarys_client_logs_in(name: Symbol, user: str, password: str) -> None:
    entry = MECHANISMS[name]
    users = Users(user, *(make_verifier(each, password, 4096) for each in HASHES))
    side = server(name, users, offered=SCRAM)
    binding = (scram.BINDING, END_POINT) if entry.binds else None
    client = ScramClient([str(name)], user, password, channel_binding=binding)
    asked = step(side, client.get_client_first().encode())
    assert isinstance(asked, Challenge)
    client.set_server_first(asked.data.decode())
    ended = step(side, client.get_client_final().encode())
    assert isinstance(ended, Success)
    assert ended.identity == user
    client.set_server_final((ended.data or b"").decode())


@pytest.mark.parametrize("name", SCRAM)
@settings(max_examples=10, deadline=None)
@given(user=NAMES, password=NAMES)
def test_the_client_logs_in_at_another_librarys_server(
    name: Symbol, user: str, password: str
) -> None:
    entry = MECHANISMS[name]
    mechanism = ScramMechanism(str(name))
    info = mechanism.make_auth_info(password)
    binding = (scram.BINDING, END_POINT) if entry.binds else None
    other = mechanism.make_server(lambda _: info, channel_binding=binding)
    client: Any = entry.client(
        client_context(user, password, end_point=END_POINT if entry.binds else None)
    )
    other.set_client_first(client.first().decode())
    final = answer(client, other.get_server_first().encode())
    other.set_client_final(final.decode())
    client.finish(other.get_server_final().encode())


def test_the_proof_may_come_as_a_challenge() -> None:
    client: Any = MECHANISMS[SHA256].client(client_context())
    side = server()
    asked = cast("Challenge", step(side, client.first()))
    ended = cast("Success", step(side, answer(client, asked.data)))
    assert client.respond(ended.data) == b""
    client.finish(None)


def test_who_has_no_initial_response_is_asked_for_it() -> None:
    side = server()
    assert step(side, None) == Challenge(b"")
    client: Any = MECHANISMS[SHA256].client(client_context())
    assert isinstance(run(client, side), Success)
    assert isinstance(step(server(), b""), Failure)


@pytest.mark.parametrize(("user", "password"), [("user", "pen"), ("nobody", "pencil")])
def test_wrong_names_and_passwords_are_refused_alike(user: str, password: str) -> None:
    client: Any = MECHANISMS[SHA256].client(client_context(user, password))
    ended = run(client, server())
    assert isinstance(ended, Failure)
    assert ended.user == user


NONCE = "r=" + CLIENT_NONCE


@pytest.mark.parametrize(
    ("first", "says"),
    [
        (b"", "not header, name and nonce"),
        (b"\0\0\0", "NUL"),
        (b"\xff\xfe", "not UTF-8"),
        (b"n,,n=us\0er,r=x", "NUL"),
        (b"n,,n=user", "not header, name and nonce"),
        (b"n,,r=abc,n=user", "attribute n= is missing at place 1"),
        (b"n,,n=user,s=abc", "attribute r= is missing at place 2"),
        (b"n,,m=x,n=user,r=abc", "extension"),
        (b"n,,n=,r=abc", "names no user"),
        (b"n,,n=us=er,r=abc", "=3D"),
        (b"n,,n=user,r=", "nonce"),
        (b"n,,n=user,r=a\x01b", "nonce"),
        (b"x,,n=user,r=abc", "flag is 'x'"),
        (b"p=,,n=user,r=abc", "flag is 'p='"),
        (b"n,bob,n=user,r=abc", "a=NAME"),
        (b"n,a=bob,n=user,r=abc", "act as 'bob'"),
        (b"p=tls-unique,,n=user,r=abc", "by a mechanism that does not"),
        (b"n,,n=user,r=" + b"a" * (1 << 20), "1048588 bytes, over 4096"),
    ],
)
def test_a_malformed_first_message_is_refused(first: bytes, says: str) -> None:
    ended = step(server(), first)
    assert isinstance(ended, Failure)
    assert says in ended.reason


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c, r, p: "", "not binding, nonce and proof"),
        (lambda c, r, p: f"{c},{r}", "not binding, nonce and proof"),
        (lambda c, r, p: f"{c},{p},{r}", "attribute r= is missing"),
        (lambda c, r, p: f"{c},{r},{p},x=y", "attribute p= is missing"),
        (lambda c, r, p: f"c=!!,{r},{p}", "channel binding is not base64"),
        (lambda c, r, p: f"c=eSws,{r},{p}", "bound to another channel"),
        (lambda c, r, p: f"{c},{r}x,{p}", "nonce is not the one"),
        (lambda c, r, p: f"{c},{NONCE},{p}", "nonce is not the one"),
        (lambda c, r, p: f"{c},{r},p=", "proof has 0 bytes"),
        (lambda c, r, p: f"{c},{r},p=AAAA", "proof has 3 bytes"),
        (lambda c, r, p: f"{c},{r},p=not base64", "proof is not base64"),
        (lambda c, r, p: f"{c},{r},p={base64.b64encode(bytes(32)).decode()}", "wrong password"),
        (lambda c, r, p: f"{c},{r},x={'y' * (1 << 20)},{p}", "over 4096"),
    ],
)
def test_a_malformed_final_message_is_refused(
    change: Callable[[str, str, str], str], says: str
) -> None:
    client: Any = MECHANISMS[SHA256].client(client_context())
    side = server()
    asked = cast("Challenge", step(side, client.first()))
    parts = answer(client, asked.data).decode().split(",")
    ended = step(side, change(*parts).encode())
    assert isinstance(ended, Failure)
    assert says in ended.reason
    assert ended.user == "user"


def mutual(first: bytes, change: Callable[[str, str, str], str]) -> bytes:
    nonce = first.decode().partition("r=")[2]
    return change(f"r={nonce}server", "s=W22ZaJ0SNY7soEsUEjb6gQ==", "i=4096").encode()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r, s, i: "", "attribute r= is missing"),
        (lambda r, s, i: "e=unknown-user", "refuses: 'unknown-user'"),
        (lambda r, s, i: f"{r},{s}", "attribute i= is missing"),
        (lambda r, s, i: f"{s},{r},{i}", "attribute r= is missing"),
        (lambda r, s, i: f"m=1,{r},{s},{i}", "extension"),
        (lambda r, s, i: f"r=other,{s},{i}", "does not continue"),
        (lambda r, s, i: f"{r.removesuffix('server')},{s},{i}", "does not continue"),
        (lambda r, s, i: f"{r},s=,{i}", "salt has 0 bytes"),
        (lambda r, s, i: f"{r},s=?,{i}", "salt is not base64"),
        (lambda r, s, i: f"{r},s={'A' * 400},{i}", "salt has 300 bytes"),
        (lambda r, s, i: f"{r},{s},i=4095", "asks for '4095' iterations"),
        (lambda r, s, i: f"{r},{s},i={ITERATIONS_MAX + 1}", "iterations"),
        (lambda r, s, i: f"{r},{s},i={'9' * 3000}", "iterations"),
        (lambda r, s, i: f"{r},{s},i=-5", "iterations"),
        (lambda r, s, i: f"{r},{s},i=1e9", "iterations"),
        (lambda r, s, i: f"{r},{s},{i},{'x' * (1 << 20)}", "over 4096"),
    ],
)
def test_the_client_bounds_what_a_server_asks(
    change: Callable[[str, str, str], str], says: str
) -> None:
    client: Any = MECHANISMS[SHA256].client(client_context())
    with pytest.raises(SaslError, match=says.replace("?", r"\?")):
        client.respond(mutual(client.first(), change))


@pytest.mark.parametrize(
    ("final", "says"),
    [
        (None, "attribute v= is missing"),
        (b"", "attribute v= is missing"),
        (b"e=other-error", "refuses: 'other-error'"),
        (b"v=?", "signature is not base64"),
        (b"v=AAAA", "does not know the password"),
        (b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "does not know the password"),
    ],
)
def test_a_server_has_to_prove_itself(final: bytes | None, says: str) -> None:
    client: Any = MECHANISMS[SHA256].client(client_context())
    asked = cast("Challenge", step(server(), client.first()))
    answer(client, asked.data)
    with pytest.raises(SaslError, match=says.replace("?", r"\?")):
        client.finish(final)


def test_a_server_cannot_leave_out_its_challenge() -> None:
    client: Any = MECHANISMS[SHA256].client(client_context())
    with pytest.raises(SaslError):
        client.finish(b"v=AAAA")


def test_a_login_passed_on_over_another_channel_is_refused() -> None:
    client: Any = MECHANISMS[SHA256_PLUS].client(client_context(end_point=bytes(32)))
    ended = run(client, server(SHA256_PLUS, offered=(SHA256_PLUS, SHA256)))
    assert isinstance(ended, Failure)
    assert "another channel" in ended.reason
    good: Any = MECHANISMS[SHA256_PLUS].client(client_context(end_point=END_POINT))
    assert isinstance(run(good, server(SHA256_PLUS, offered=(SHA256_PLUS,))), Success)


def test_an_offer_that_was_cut_down_is_found_out() -> None:
    context = client_context(end_point=END_POINT, offered=(SHA256,))
    client: Any = MECHANISMS[SHA256].client(context)
    ended = run(client, server(offered=(SHA256_PLUS, SHA256)))
    assert isinstance(ended, Failure)
    assert "somebody is in between" in ended.reason
    assert isinstance(run(MECHANISMS[SHA256].client(context), server(offered=(SHA256,))), Success)
    by_name: Any = MECHANISMS[SHA256].client(replace(context, chosen=(SHA256,)))
    assert isinstance(run(by_name, server(offered=(SHA256_PLUS, SHA256))), Success)


def test_plus_needs_a_binding() -> None:
    ended = step(server(SHA256_PLUS), b"n,,n=user,r=abc")
    assert isinstance(ended, Failure)
    assert "binds to None" in ended.reason
    assert MECHANISMS[SHA256_PLUS].client(client_context()) is None


def test_keys_are_derived_once() -> None:
    derived: list[Keys] = []

    async def counted(work: Callable[[], Keys]) -> Keys:
        derived.append(work())
        return derived[-1]

    context = replace(client_context(), work=counted)
    for _ in range(3):
        assert isinstance(run(MECHANISMS[SHA256].client(context), server()), Success)
    assert len(derived) == 1
    assert "pencil" not in repr(context)


@pytest.mark.parametrize("flag", ["n", "y"])
def test_who_acts_as_itself_may_say_so(flag: str) -> None:
    assert isinstance(step(server(), f"{flag},a=user,n=user,r=abc".encode()), Challenge)
