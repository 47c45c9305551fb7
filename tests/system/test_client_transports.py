"""The client over TLS and WebSocket, and as whom it connects."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import trustme

import cogwork
from cogwork.bench.servers.process import free_ports
from cogwork.config.password_hash import hash_password
from cogwork.io.tls import client_context
from cogwork.testing import TestContainer

from .served import OPEN
from .stories import story

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path


CONFIGURATION = """
[[listen]]
port = {amqp}

[[listen]]
port = {amqps}
transport = "amqps"
tls = {{ certificate = "{server}", client_ca = "{ca}" }}

[[listen]]
port = {ws}
transport = "ws"

[[listen]]
port = {wss}
transport = "wss"
tls = {{ certificate = "{server}" }}

[[user]]
name = "jo@example.org"
password_hash = "{password_hash}"
permissions = [
    {{ address = "sink/#", rights = ["send"] }},
    {{ address = "topic/#", rights = ["send", "receive"], vhost = "*" }},
]

[[user]]
name = "robot"
password_hash = "{password_hash}"
permissions = [{{ address = "#", rights = ["send", "receive"], vhost = "*" }}]

[[vhost]]
name = "shop"
"""


class Stage:
    """A container with every transport.

    Attributes:
        tls: Trusts its certificate.
        robot: Trusts it too, and shows the robot's own.
    """

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(folder / "ca.pem")
        authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(
            folder / "server.pem"
        )
        authority.issue_cert(
            "robot@x.example", common_name="robot"
        ).private_key_and_cert_chain_pem.write_to_path(folder / "robot.pem")
        self.ports = dict(zip(("amqp", "amqps", "ws", "wss"), free_ports(4), strict=True))
        self.tls: ssl.SSLContext = client_context(folder / "ca.pem")
        self.robot: ssl.SSLContext = client_context(folder / "ca.pem", folder / "robot.pem")
        text = OPEN + CONFIGURATION.format(
            **self.ports,
            server=folder / "server.pem",
            ca=folder / "ca.pem",
            password_hash=hash_password("pass:word"),
        )
        self.container = TestContainer(text, 0, "stage")

    def url(self, scheme: str, user: str = "", path: str = "") -> str:
        """Return where it listens."""
        return f"{scheme}://{user}127.0.0.1:{self.ports[scheme]}{path}"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One container for all tests of the module."""
    made = Stage(tmp_path_factory.mktemp("transports"))
    made.container.start()
    yield made
    made.container.stop()


JO = "jo%40example.org:pass%3Aword@"


@pytest.mark.parametrize("scheme", ["amqp", "amqps", "ws", "wss"])
@story
async def test_messages_travel_over_every_transport(stage: Stage, scheme: str) -> None:
    async with (
        cogwork.connect(stage.url(scheme, JO), tls=stage.tls) as client,
        client.subscribe("topic/over") as messages,
        client.publisher("topic/over") as out,
    ):
        bodies = [b"small", b"x" * 3_000_000, "end"]
        outcomes = await out.send_batch(bodies)
        assert all(outcome.is_accepted for outcome in outcomes)
        assert [(await anext(messages)).body for _ in bodies] == bodies


@story
async def test_a_client_certificate_says_who_it_is(stage: Stage) -> None:
    url = stage.url("amqps")
    async with cogwork.connect(url, tls=stage.robot, sasl="EXTERNAL") as client:
        await client.publish("broadcast/robots", 1)
    async with cogwork.connect(stage.url("amqps", JO), tls=stage.tls) as client:
        with pytest.raises(cogwork.PermissionDenied):
            await client.publish("broadcast/robots", 1)


@story
async def test_who_shows_no_certificate_is_not_asked_to_log_in_by_one(stage: Stage) -> None:
    """It would take EXTERNAL where that is offered, for it cannot tell, and be refused."""
    async with cogwork.connect(stage.url("amqps"), tls=stage.tls) as client:
        await client.publish("topic/anonymous", 1)


@story
async def test_a_server_that_nobody_vouches_for_is_not_trusted(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(cogwork.ConnectError, match="certificate"):
        await cogwork.connect(stage.url("amqps", JO)).__aenter__()
    while not (told := [each for each in caplog.records if "TLS handshake" in each.getMessage()]):
        await asyncio.sleep(0.01)
    assert [(each.levelname, each.exc_info) for each in told] == [("WARNING", None)]


@pytest.mark.parametrize(
    ("scheme", "port", "named"), [("amqp", "amqps", "amqps://"), ("ws", "amqp", "amqp://")]
)
@story
async def test_the_wrong_port_says_what_may_be_meant(
    stage: Stage, scheme: str, port: str, named: str
) -> None:
    """It is one mistake that everybody makes."""
    url = f"{scheme}://127.0.0.1:{stage.ports[port]}"
    with pytest.raises(
        cogwork.ConnectError, match=f"(before anything came; |the peer requires TLS: ).*{named}"
    ):
        await cogwork.connect(url).__aenter__()


@pytest.mark.parametrize("login", ["jo%40example.org:guessed@", "nobody:pass%3Aword@"])
@story
async def test_a_wrong_login_is_told_at_once(
    stage: Stage, login: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(cogwork.AuthenticationError, match="refused") as caught:
        await cogwork.connect(stage.url("amqp", login)).__aenter__()
    assert not any(each in str(caught.value) for each in ("guessed", "pass:", ":word"))
    assert caught.value.condition == cogwork.Condition.UNAUTHORIZED_ACCESS
    user = login.partition(":")[0].replace("%40", "@")
    assert f"there is no user {user!r}, or the password is wrong" in str(caught.value)
    assert f"refused a login as {user!r}" in caplog.text


@story
async def test_a_mechanism_that_is_not_offered_is_named(stage: Stage) -> None:
    with pytest.raises(cogwork.AuthenticationError, match="EXTERNAL"):
        await cogwork.connect(stage.url("amqp"), sasl="EXTERNAL").__aenter__()


@story
async def test_what_a_user_may_not_do_is_denied(stage: Stage) -> None:
    async with cogwork.connect(stage.url("amqp", JO)) as client:
        await client.publish("sink/allowed", 1)
        with pytest.raises(cogwork.PermissionDenied, match="queue/denied"):
            await client.publisher("queue/denied").open()
        with pytest.raises(cogwork.PermissionDenied, match="sink/allowed"):
            await client.consume("sink/allowed").open()
        with pytest.raises(cogwork.PermissionDenied, match="queue/denied"):
            await client.publish("queue/denied", 1)


@story
async def test_a_virtual_host_is_a_world_of_its_own(stage: Stage) -> None:
    async with (
        cogwork.connect(stage.url("amqp", path="/shop")) as shop,
        cogwork.connect(stage.url("amqp")) as outside,
        shop.subscribe("topic/both") as messages,
    ):
        await outside.publish("topic/both", "outside")
        await shop.publish("topic/both", "shop")
        assert (await anext(messages)).body == "shop"


@story
async def test_a_web_server_is_no_container(stage: Stage) -> None:
    with pytest.raises(cogwork.ConnectError):
        await cogwork.connect(f"ws://127.0.0.1:{stage.ports['amqp']}").__aenter__()
