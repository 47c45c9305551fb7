"""Logins by token: let in, told apart, cut off when the token ends, and let in again."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from contextlib import asynccontextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pika
import pytest
import trustme
from issuers import AUDIENCE, ISSUER, Issuer, JwksServer, jwks_server, saying
from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import ConnectionClosedByBroker, ProbableAuthenticationError

import cogwork
from cogwork.amqp.frames import SASL_HEADER, FrameReader, FrameType, encode_frame
from cogwork.amqp.sasl import (
    OAUTHBEARER,
    SaslChallenge,
    SaslCode,
    SaslFrame,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    decode_sasl,
    encode_sasl,
)
from cogwork.config.password_hash import hash_password
from cogwork.config.reading import parse
from cogwork.container.security.oauth import key_store

from .linked import Linked, linked
from .stories import QUICKLY, eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from cogwork.client.connection.tokens import Token
    from cogwork.container.container import Container

RULES = f"""
[oauth]
issuer = "{ISSUER}"
audience = ["{AUDIENCE}"]
leeway_s = 0
groups_claim = "scope"
groups = {{ "orders:write" = "publishers", "orders:read" = "readers" }}
"""

USERS = f"""
[[group]]
name = "publishers"
permissions = [{{ address = "queue/$user", rights = ["send", "receive"] }}]

[[group]]
name = "readers"
permissions = [{{ address = "queue/ann", rights = ["receive"] }}]

[[user]]
name = "root"
password_hash = "{hash_password("word")}"
permissions = [{{ address = "#", rights = ["send", "receive"] }}]

[[user]]
name = "robot"
tokens = true
permissions = [{{ address = "queue/robot", rights = ["send"] }}]
"""

WRITE = "orders:write"


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


class Stage:
    """A container that takes the tokens of an issuer, whose keys it fetches."""

    def __init__(self, mesh: Linked, issuer: Issuer, server: JwksServer) -> None:
        self.mesh, self.issuer, self.server = mesh, issuer, server

    @property
    def container(self) -> Container:
        return self.mesh.containers["a"]

    async def start(self) -> None:
        await self.mesh.start("a", configuration=self.rules())

    def rules(self, **more: str) -> str:
        lines = "".join(f"{key} = {value}\n" for key, value in more.items())
        return f'{RULES}jwks = "{self.server.url}"\n{lines}{USERS}'

    def reload(self, text: str) -> None:
        self.container.reconfigure(parse(f'id = "a"\n[[listen]]\nport = 0\n{text}', "test"))

    async def client(self, token: Token) -> cogwork.Client:
        made = cogwork.connect(self.container.endpoints[0], token=token, retry=QUICKLY)
        return await self.mesh.enter(made)

    async def refused(
        self,
        token: str,
        says: str = "it does not take the token",
        kind: type[cogwork.ConnectError] = cogwork.AuthenticationError,
    ) -> None:
        with pytest.raises(kind, match=says) as caught:
            await self.client(token)
        assert token not in str(caught.value)


@asynccontextmanager
async def staged(issuer: Issuer) -> AsyncIterator[Stage]:
    with jwks_server(issuer.jwks()) as server:
        async with linked() as mesh:
            stage = Stage(mesh, issuer, server)
            await stage.start()
            yield stage


@story
async def test_a_user_publishes_expires_is_cut_off_and_renews(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    tokens: list[str] = []

    async def fresh() -> str:
        await asyncio.sleep(0)
        tokens.append(issuer.token(scope=WRITE, exp=time.time() + 1.5))
        return tokens[-1]

    async with staged(issuer) as stage:
        short = await stage.client(fresh)
        stale = await stage.client(issuer.token("bob", scope=WRITE, exp=time.time() + 1.5))
        long = await stage.client(issuer.token("eve", scope=WRITE))
        for each, name in ((short, "ann"), (stale, "bob"), (long, "eve")):
            await each.publish(f"queue/{name}", 1)
        async with short.consume("queue/ann") as items:
            held = await anext(items)
            await eventually(lambda: short.connections == 2, "a fresh token lets it in again")
            await held.accept()
            await short.publish("queue/ann", 2)
            assert (await anext(items)).body == 2
        assert stage.container.vhosts[""].nodes["queue/ann"].status()["depth"] == 1
        await eventually(lambda: not stale.is_connected, "its one token is over")
        with pytest.raises(cogwork.Disconnected, match="does not take the token"):
            await stale.publish("queue/bob", 2)
        await long.publish("queue/eve", 2)
        assert long.connections == 1
    assert "because the token of user 'ann' has expired: log in again with a new one" in caplog.text
    assert len(tokens) == 2
    assert not any(token in caplog.text for token in tokens)


@story
async def test_a_token_that_is_no_good_is_refused_and_the_log_says_why(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged(issuer) as stage:
        bystander = await stage.client(issuer.token(scope=WRITE))
        bad = {
            issuer.token(exp=1): "token refused: it has expired",
            issuer.token(aud="other"): "token refused: it is for another audience",
            Issuer().token(): "token refused: it is not signed by the key that it names",
            "garbage": "token refused: it is no token",
            issuer.token("root"): "user 'root' is configured, without tokens = true",
        }
        for token, why in bad.items():
            caplog.clear()
            await stage.refused(token)
            assert why in caplog.text
            assert token not in caplog.text
        url = stage.container.endpoints[0].replace("://", "://ann@")
        with pytest.raises(cogwork.AuthenticationError):
            await cogwork.connect(url, token=issuer.token("bob")).__aenter__()
        assert "it wants to act as 'ann'" in caplog.text
        await bystander.publish("queue/ann", 1)
        assert bystander.connections == 1


@story
async def test_claims_say_what_may_be_done(issuer: Issuer) -> None:
    async with staged(issuer) as stage:
        ann = await stage.client(issuer.token(scope=WRITE))
        await ann.publish("queue/ann", 1)
        with pytest.raises(cogwork.CogworkError, match="no permission to send at 'queue/bob'"):
            await ann.publish("queue/bob", 1)
        bob = await stage.client(issuer.token("bob", scope="other orders:read"))
        async with bob.consume("queue/ann") as items:
            assert (await anext(items)).body == 1
        with pytest.raises(cogwork.CogworkError, match="no permission to send"):
            await bob.publish("queue/ann", 1)
        robot = await stage.client(issuer.token("robot", scope=WRITE))
        await robot.publish("queue/robot", 1)
        async with robot.consume("queue/robot") as items:
            assert (await anext(items)).body == 1


@story
async def test_a_reload_takes_back_what_tokens_no_longer_give(issuer: Issuer) -> None:
    async with staged(issuer) as stage:
        ann = await stage.client(issuer.token(scope=WRITE))
        robot = await stage.client(issuer.token("robot"))
        await ann.publish("queue/ann", 1)
        narrower = stage.rules().replace('"queue/$user"', '"queue/other"')
        stage.reload(narrower)
        with pytest.raises(cogwork.CogworkError, match="no permission to send at 'queue/ann'"):
            await ann.publish("queue/ann", 2)
        assert ann.connections == 1
        stage.reload(stage.rules().replace("tokens = true", ""))
        await eventually(lambda: not robot.is_connected, "robot may have no token any more")
        await ann.publish("queue/ann", 2)
        stage.reload(stage.rules(user_claim='"email"'))
        await eventually(lambda: not ann.is_connected, "its token names nobody any more")


@story
async def test_keys_that_are_away_let_nobody_in_but_those_that_are_in(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged(issuer) as stage:
        stage.server.answer = saying(b"<html>sorry</html>", 503)
        await stage.refused(issuer.token(), "it cannot check now; try again", cogwork.ConnectError)
        assert "it answers with the status 503; no token can be checked" in caplog.text
        url = stage.container.endpoints[0].replace("://", "://root:word@")
        async with cogwork.connect(url) as root:
            await root.publish("queue/a", 1)
        assert stage.server.asked == 1


@story
async def test_keys_come_by_https_from_whom_an_own_authority_vouches_for(
    issuer: Issuer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    other.cert_pem.write_to_path(tmp_path / "other.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with jwks_server(issuer.jwks(), context) as server:
        async with linked() as mesh:
            stage = Stage(mesh, issuer, server)
            await mesh.start("a", configuration=stage.rules(ca=f'"{tmp_path / "ca.pem"}"'))
            ann = await stage.client(issuer.token(scope=WRITE))
            await ann.publish("queue/ann", 1)
            assert server.asked == 1
            for name, more in (("b", {"ca": f'"{tmp_path / "other.pem"}"'}), ("c", {})):
                caplog.clear()
                await mesh.start(name, configuration=stage.rules(**more))
                url = mesh.containers[name].endpoints[0]
                with pytest.raises(cogwork.ConnectError, match="it cannot check now; try again"):
                    await cogwork.connect(url, token=issuer.token()).__aenter__()
                assert "certificate" in caplog.text
                assert "no token can be checked" in caplog.text
            assert server.asked == 1
            assert ann.connections == 1


@story
async def test_a_client_comes_back_once_there_are_keys_and_a_good_token(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(key_store, "PAUSE_S", 0.05)
    tokens = [issuer.token(scope=WRITE) for _ in range(100)]
    async with staged(issuer) as stage:
        steady = await stage.client(tokens[0])
        fickle = await stage.client(tokens.pop)
        away, back = saying(b"", 503), stage.server.answer
        stage.server.answer = away
        stage.reload(stage.rules(refresh_s="3600"))  # which begins without keys
        await eventually(lambda: caplog.text.count("no token can be checked") > 1, "keys are away")
        assert not steady.is_connected
        tokens.append(issuer.token(exp=1))
        stage.server.answer = back
        await eventually(lambda: steady.is_connected and fickle.is_connected, "both are back")
        await steady.publish("queue/ann", 1)
        await fickle.publish("queue/ann", 2)


@story
async def test_a_foreign_client_is_told_as_the_rfc_has_it(issuer: Issuer) -> None:
    async with staged(issuer) as stage:
        good = issuer.token(scope=WRITE)
        assert await exchange(stage.container, good) == [SaslOutcome(code=SaslCode.OK)]
        told, outcome = await exchange(stage.container, issuer.token(exp=1))
        assert isinstance(told, SaslChallenge)
        assert json.loads(told.challenge) == {"status": "invalid_token"}
        assert outcome == SaslOutcome(code=SaslCode.AUTH)


async def exchange(container: Container, token: str) -> list[SaslFrame]:
    """Log in frame by frame; return what the container says to it."""
    host, _, port = container.endpoints[0].removeprefix("amqp://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    frames, heard = FrameReader(1 << 16), list[Any]()

    def say(frame: SaslFrame) -> None:
        writer.write(encode_frame(0, encode_sasl(frame), FrameType.SASL))

    async def hear(kind: type[SaslFrame]) -> None:
        while not heard or not isinstance(heard[-1], kind):
            data = await reader.read(65536)
            assert data, heard
            heard.extend(decode_sasl(frame.body) for frame in frames.feed(data))

    writer.write(SASL_HEADER)
    assert await reader.readexactly(8) == SASL_HEADER
    await hear(SaslMechanisms)
    assert OAUTHBEARER in heard.pop().sasl_server_mechanisms
    response = f"n,,\x01host=h\x01port=5672\x01auth=Bearer {token}\x01\x01".encode()
    say(SaslInit(mechanism=OAUTHBEARER, initial_response=response))
    await hear(SaslFrame)  # type: ignore[arg-type]  # a union is as good for isinstance
    if isinstance(heard[-1], SaslChallenge):
        say(SaslResponse(response=b"\x01"))
        await hear(SaslOutcome)
    writer.close()
    return heard


@story
async def test_a_link_logs_in_by_token_and_comes_back_with_a_fresh_one(
    issuer: Issuer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text(issuer.token("robot", exp=time.time() + 2))
    async with staged(issuer) as stage:
        stage.reload(stage.rules().replace("tokens = true", "tokens = true\nmesh = true"))
        url = stage.container.endpoints[0].replace("://", "://robot@")
        link = f'[[link]]\nurl = "{url}"\ntoken_file = "{file}"\n'
        await stage.mesh.start("south", configuration=link)
        there = stage.container.mesh
        await eventually(lambda: there.is_linked("south"), "south is linked")
        told = stage.mesh.containers["south"].mesh.diallers
        await eventually(lambda: any(map(attrgetter("problem"), told)), "it is cut off")
        assert "link to container south: closed, because the token of user 'robot'" in caplog.text
        file.write_text(issuer.token("robot"))
        await eventually(lambda: there.is_linked("south"), "south is linked again")
        await asyncio.sleep(1.2)  # longer than between two looks at tokens
        assert there.is_linked("south")


@story
async def test_a_link_stands_on_where_its_token_is_renewed_before_its_end(
    issuer: Issuer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    first_end_s = time.time() + 4
    file.write_text(issuer.token("robot", exp=first_end_s))
    async with staged(issuer) as stage:
        stage.reload(stage.rules().replace("tokens = true", "tokens = true\nmesh = true"))
        url = stage.container.endpoints[0].replace("://", "://robot@")
        link = f'[[link]]\nurl = "{url}"\ntoken_file = "{file}"\n'
        await stage.mesh.start("south", configuration=link)
        await eventually(lambda: stage.container.mesh.is_linked("south"), "south is linked")
        [peer_link] = stage.container.mesh.peer_links
        file.write_text(issuer.token("ann"))
        await eventually(lambda: "does not hold" in caplog.text, "another user's is refused")
        file.write_text("")
        await eventually(lambda: "cannot renew its token" in caplog.text, "there is none")
        assert time.time() < first_end_s
        second_end_s = time.time() + 6
        file.write_text(issuer.token("robot", exp=second_end_s))
        await asyncio.sleep(max(0.0, first_end_s + 1.2 - time.time()))
        assert stage.container.mesh.peer_links == [peer_link]
        assert "link to container south: closed" not in caplog.text
        await eventually(lambda: "link to container south: closed" in caplog.text, "it is over")
        assert time.time() > second_end_s


@pytest.mark.parametrize(
    ("token", "says"),
    [
        (lambda: 1 / 0, "cannot get a token: division by zero"),
        (lambda: "two words", "what `token` returns is none"),
    ],
)
@story
async def test_who_gets_no_token_does_not_log_in(token: Callable[[], Any], says: str) -> None:
    async with linked() as mesh:
        await mesh.start("a")
        with pytest.raises(cogwork.ConnectError, match=says) as caught:
            await cogwork.connect(mesh.containers["a"].endpoints[0], token=token).__aenter__()
        assert "two words" not in str(caught.value)
        with pytest.raises(cogwork.AuthenticationError, match="this client can use OAUTHBEARER"):
            await mesh.enter(cogwork.connect(mesh.containers["a"].endpoints[0], token="t"))
    with pytest.raises(ValueError, match="token is a text of letters"):
        cogwork.connect("amqp://h", token="a\x01b")


@story
async def test_a_client_of_amqp_0_9_1_gives_its_token_as_a_password_and_renews_it(
    issuer: Issuer,
) -> None:
    async with staged(issuer) as stage:
        await asyncio.to_thread(_renew_by_pika, stage.container.endpoints[0], issuer)


def _renew_by_pika(url: str, issuer: Issuer) -> None:
    port = int(url.rpartition(":")[2])

    def connected(token: str) -> BlockingConnection:
        login = pika.PlainCredentials("anybody", token)
        return BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, credentials=login))

    with pytest.raises(ProbableAuthenticationError):
        connected(issuer.token("ann", scope=WRITE, exp=time.time() - 60))
    ends_s = time.time() + 3
    connection = connected(issuer.token("ann", scope=WRITE, exp=ends_s))
    connection.update_secret(issuer.token("ann", scope=WRITE), "it ends soon")
    channel = connection.channel()
    channel.confirm_delivery()
    while time.time() < ends_s + 1:
        connection.process_data_events(0.2)
    channel.basic_publish("", "ann", b"after the first one's end")
    with pytest.raises(ConnectionClosedByBroker) as closed:
        connection.update_secret(issuer.token("bob", scope=WRITE), "another user's")
    assert (closed.value.reply_code, "New secret was refused" in closed.value.reply_text) == (
        530,
        True,
    )
