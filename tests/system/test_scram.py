"""The client, links and old users: SCRAM over sockets, where PLAIN is not told any more."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trustme

import cogwork
from cogwork.amqp.frames import SASL_HEADER, FrameReader, FrameType, encode_frame
from cogwork.amqp.sasl import (
    SaslChallenge,
    SaslCode,
    SaslFrame,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    decode_sasl,
    encode_sasl,
)
from cogwork.amqp.types import Symbol
from cogwork.bench.servers.process import free_ports
from cogwork.client.connection.url import parse_url
from cogwork.config.password_hash import hash_password
from cogwork.io.login import ClientLogin
from cogwork.io.tls import client_context
from cogwork.sasl.sides import ClientContext
from cogwork.sasl.verifier import HASHES, Keys, make_verifier
from cogwork.testing import TestContainer

from .linked import Linked, linked
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from cogwork.sasl.mechanisms import MechanismName


def verifiers(password: str) -> list[str]:
    return [str(make_verifier(each, password, 4096)) for each in HASHES]


USERS = f"""
[[user]]
name = "new, ann"
scram_verifiers = {verifiers("pass:word")}
permissions = [{{ address = "#", rights = ["send", "receive"] }}]

[[user]]
name = "old"
password_hash = "{hash_password("pass:word")}"
permissions = [{{ address = "#", rights = ["send", "receive"] }}]
"""

LISTEN = """
[[listen]]
port = {amqp}

[[listen]]
port = {amqps}
transport = "amqps"
tls = {{ certificate = "{server}" }}

[[listen]]
port = {wss}
transport = "wss"
sasl = ["SCRAM-SHA-256-PLUS"]
tls = {{ certificate = "{server}" }}
"""

NEW, OLD = "new%2C%20ann:pass%3Aword@", "old:pass%3Aword@"


class Stage:
    """A container with and without TLS."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(folder / "ca.pem")
        self.ca = folder / "ca.pem"
        self.server = folder / "server.pem"
        made = authority.issue_cert("127.0.0.1")
        made.private_key_and_cert_chain_pem.write_to_path(self.server)
        self.ports = dict(zip(("amqp", "amqps", "wss"), free_ports(3), strict=True))
        self.tls = client_context(self.ca)
        listen = LISTEN.format(**self.ports, server=self.server)
        self.container = TestContainer(listen + USERS, 0, "stage")

    def url(self, scheme: str, user: str) -> str:
        return f"{scheme}://{user}127.0.0.1:{self.ports[scheme]}"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One container for all tests of the module."""
    made = Stage(tmp_path_factory.mktemp("scram"))
    made.container.start()
    yield made
    made.container.stop()


@pytest.mark.parametrize("scheme", ["amqp", "amqps", "wss"])
@story
async def test_who_has_verifiers_alone_is_let_in(stage: Stage, scheme: str) -> None:
    async with cogwork.connect(stage.url(scheme, NEW), tls=stage.tls) as mesh:
        await mesh.publish("sink/x", 1)


@pytest.mark.parametrize(
    ("scheme", "mechanism"),
    [
        ("amqp", "SCRAM-SHA-256"),
        ("amqp", "SCRAM-SHA-512"),
        ("amqps", "SCRAM-SHA-256"),
        ("amqps", "SCRAM-SHA-512-PLUS"),
    ],
)
@story
async def test_a_mechanism_may_be_named(
    stage: Stage, scheme: str, mechanism: MechanismName
) -> None:
    async with cogwork.connect(stage.url(scheme, NEW), tls=stage.tls, sasl=mechanism) as mesh:
        await mesh.publish("sink/x", 1)


@story
async def test_plus_without_tls_is_not_to_be_had(stage: Stage) -> None:
    with pytest.raises(cogwork.AuthenticationError, match="this client can use SCRAM-SHA-512-PLUS"):
        await cogwork.connect(stage.url("amqp", NEW), sasl="SCRAM-SHA-512-PLUS").__aenter__()


@pytest.mark.parametrize("scheme", ["amqp", "amqps"])
@story
async def test_an_old_hash_logs_in_by_plain(stage: Stage, scheme: str) -> None:
    async with cogwork.connect(stage.url(scheme, OLD), tls=stage.tls) as mesh:
        await mesh.publish("sink/x", 1)
    by_name = cogwork.connect(stage.url(scheme, OLD), tls=stage.tls, sasl="SCRAM-SHA-256")
    with pytest.raises(cogwork.AuthenticationError, match="no user 'old', or the password"):
        await by_name.__aenter__()


@story
async def test_a_wrong_password_is_refused_and_told_nowhere(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO), pytest.raises(cogwork.AuthenticationError) as caught:
        await cogwork.connect(stage.url("amqp", "new%2C%20ann:guessed@")).__aenter__()
    assert "there is no user 'new, ann', or the password is wrong" in str(caught.value)
    assert "guessed" not in caplog.text + str(caught.value)


def test_a_password_is_told_where_nobody_reads_along_or_it_was_asked_for() -> None:
    async def never(work: Callable[[], Keys]) -> Keys:
        return work()

    names = tuple(map(Symbol, ("SCRAM-SHA-256", "PLAIN")))

    def may_tell(url: str, chosen: tuple[str, ...] | None) -> bool:
        login = ClientLogin()
        context = ClientContext(
            never,
            user="u",
            is_private=parse_url(url).is_private,
            offered=names,
            chosen=None if chosen is None else tuple(map(Symbol, chosen)),
        )
        login.begin(context, "h")
        assert login.mechanism == "SCRAM-SHA-256"
        return login.may_tell_password

    assert may_tell("amqps://far.example", None)
    assert may_tell("amqp://127.0.0.1", None)
    assert may_tell("unix:///run/x.sock", None)
    assert not may_tell("amqp://far.example", None)
    assert not may_tell("ws://127.evil.example", None)
    assert not may_tell("amqps://far.example", ("SCRAM-SHA-256",))
    assert may_tell("amqp://far.example", ("SCRAM-SHA-256", "PLAIN"))


def test_a_mechanism_that_there_is_not_is_named() -> None:
    with pytest.raises(ValueError, match=r"sasl is one of ANONYMOUS.*not 'SCRAM-MD5'"):
        cogwork.connect("amqp://h", sasl="SCRAM-MD5")  # type: ignore[arg-type]  # as users do


# -- servers that are not what they say


@asynccontextmanager
async def lying(answer: Callable[[bytes], list[SaslFrame]]) -> AsyncIterator[str]:
    """A server that offers SCRAM, and answers each message of a client as it likes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader(1 << 21)

        def say(frame: SaslFrame) -> None:
            writer.write(encode_frame(0, encode_sasl(frame), FrameType.SASL))

        await reader.readexactly(8)
        writer.write(SASL_HEADER)
        say(SaslMechanisms(sasl_server_mechanisms=(Symbol("SCRAM-SHA-256"), Symbol("PLAIN"))))
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                for frame in frames.feed(data):
                    said = decode_sasl(frame.body)
                    message = said.initial_response if isinstance(said, SaslInit) else b""
                    for reply in answer(message or b""):
                        say(reply)
        writer.close()
        served.set()

    served = asyncio.Event()
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"amqp://ann:secret@127.0.0.1:{port}"
        await served.wait()


def first(
    client_first: bytes, salt: bytes = b"AAECAwQFBgcICQoLDA0ODw==", count: str = "4096"
) -> bytes:
    nonce = client_first.partition(b"r=")[2]
    return b"r=" + nonce + b"more,s=" + salt + b",i=" + count.encode()


def accept(data: bytes | None) -> list[SaslFrame]:
    return [SaslOutcome(code=SaslCode.OK, additional_data=data)]


def challenge(data: bytes) -> list[SaslFrame]:
    return [SaslChallenge(challenge=data)]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda _: accept(None), "SCRAM proof is not usable"),
        (lambda _: accept(b"v=AAAA"), "does not know the password"),
        (lambda said: challenge(first(said, count="999999999")), "asks for '999999999' iter"),
        (lambda said: challenge(first(said, count="1")), "asks for '1' iterations"),
        (lambda said: challenge(first(said, salt=b"!")), "salt is not base64"),
        (lambda _: challenge(b"r=other,s=AAAA,i=4096"), "does not continue this client's nonce"),
        (lambda _: challenge(b"e=unknown-user"), "refuses: 'unknown-user'"),
        (lambda _: challenge(b"\xff"), "not UTF-8"),
        (lambda _: challenge(b"r=" + b"x" * 30_000), "over 4096"),
        (lambda said: challenge(first(said)) if said else accept(b"v=AAAA"), "does not know"),
        (lambda said: challenge(first(said) if said else b"v=AAAA"), "does not know"),
        (lambda said: challenge(first(said)) * 3 if said else [], "asks again"),
    ],
)
@story
async def test_a_lying_server_gets_nothing(
    answer: Callable[[bytes], list[SaslFrame]], says: str
) -> None:
    async with lying(answer) as url:
        with pytest.raises(cogwork.AuthenticationError, match=says) as caught:
            await cogwork.connect(url).__aenter__()
    assert "secret" not in str(caught.value)


# -- links


LINKS = f"""
[anonymous]
mesh = false

[[user]]
name = "new"
mesh = true
scram_verifiers = {verifiers("secret")}

[[user]]
name = "old"
mesh = true
password_hash = "{hash_password("secret")}"
"""


@pytest.mark.parametrize("user", ["new", "old"])
@story
async def test_links_log_in_by_scram_or_with_an_old_hash(user: str) -> None:
    async with linked(configuration=LINKS) as mesh:
        await mesh.start("north")
        await dial(mesh, f"amqp://{user}:secret@{mesh.address('north')}")


@story
async def test_a_link_is_bound_to_its_channel(stage: Stage) -> None:
    (port,) = free_ports(1)
    listen = (
        f'[[listen]]\nport = {port}\ntransport = "amqps"\nsasl = ["SCRAM-SHA-512-PLUS"]\n'
        f'tls = {{ certificate = "{stage.server}" }}\n'
    )
    async with linked(configuration=LINKS) as mesh:
        await mesh.start("north", configuration=listen)
        await dial(mesh, f"amqps://new:secret@127.0.0.1:{port}", f'ca = "{stage.ca}"')


async def dial(mesh: Linked, url: str, more: str = "") -> None:
    await mesh.start("south", configuration=f'[[link]]\nurl = "{url}"\n{more}\n')
    await eventually(lambda: mesh.containers["north"].mesh.is_linked("south"), "linked")
