"""A gateway of one's own, in a container: what it gets, and when."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

import pytest

from cogwork.config.reading import parse
from cogwork.container.container import Container
from cogwork.dataplane.message.messages import Message
from cogwork.plugin.door import Code
from cogwork.plugin.gateway import GatewayError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from cogwork.plugin.door import Arrival, Door, Inlet
    from cogwork.plugin.gateway import GatewayContext, Watch

CONFIGURATION = """
id = "gatewayed"
[[listen]]
port = 0
[anonymous]
permissions = [
    { address = "#", rights = ["send", "receive"] },
]
[[user]]
name = "echo"
permissions = [
    { address = "unicast/#", rights = ["send", "receive"] },
    { address = "queue/#", rights = ["send", "receive"] },
]
[gateway."test_gateways:Echo"]
word = "hello"
"""


class Echo:
    """Receives from addresses, and says what it was told."""

    made: ClassVar[list[Echo]] = []

    def __init__(self, context: GatewayContext) -> None:
        if "word" not in context.options:
            raise GatewayError("word: is missing")
        self.context = context
        self.told: list[tuple[object, ...]] = []
        self.door: Door | None = None
        self.is_drained = True
        self.made.append(self)

    @property
    def endpoints(self) -> list[str]:
        return ["echo://here"]

    def start(self, watch: Watch) -> None:
        assert watch is asyncio.get_running_loop()
        self.door = self.context.open_door(self, "echo")

    def tick(self, now_s: float) -> None:
        pass

    def reload(self) -> None:
        self.told.append(("reload",))
        raise GatewayError("word.key: no key")

    def drain(self) -> None:
        self.told.append(("drain",))

    def close(self) -> None:
        self.told.append(("close",))

    def status(self) -> Mapping[str, object]:
        return {"told": len(self.told)}

    def on_outcome(self, token: int, code: int, reason: str) -> None:
        self.told.append(("outcome", token, code, reason))

    def on_credit(self) -> None:
        self.told.append(("credit",))

    def on_closed(self) -> None:
        self.told.append(("closed",))


class Seen:
    """One inlet's receiver."""

    def __init__(self) -> None:
        self.attached = ""
        self.why_closed: str | None = None
        self.arrivals: list[Arrival] = []

    def on_attached(self, address: str) -> None:
        self.attached = address

    def on_arrivals(self, arrivals: Sequence[Arrival]) -> None:
        self.arrivals += arrivals

    def on_closed(self, reason: str) -> None:
        self.why_closed = reason


def gatewayed(test: Callable[[Echo, Container], Awaitable[None]]) -> None:
    """Run a test with a container that has an `Echo`."""

    async def run() -> None:
        container = Container(parse(CONFIGURATION, "test"))
        await container.start()
        try:
            await test(Echo.made.pop(), container)
        finally:
            await container.stop(1.0)

    asyncio.run(run())


def attached(echo: Echo, address: str | None, credit: int) -> tuple[Seen, Inlet]:
    assert echo.door is not None
    seen = Seen()
    inlet = echo.door.attach(address, seen, credit)
    echo.door.flush()
    return seen, inlet


def post(echo: Echo, address: str, token: int, body: object = "x") -> None:
    assert echo.door is not None
    assert echo.door.post(Message(body, to=address).encode(), token, is_settled=False)
    echo.door.flush()


def test_a_message_goes_through_the_door_and_back() -> None:
    async def test(echo: Echo, container: Container) -> None:
        seen, inlet = attached(echo, "unicast/a", 1)
        assert seen.attached == "unicast/a"
        post(echo, "unicast/a", 7, b"y" * 200_000)
        (arrival,) = seen.arrivals
        assert Message.decode(arrival.message).body == b"y" * 200_000
        assert echo.told == []
        inlet.settle(arrival.token, Code.ACCEPTED)
        assert echo.door is not None
        echo.door.flush()
        assert echo.told == [("outcome", 7, Code.ACCEPTED, "")]
        assert container.gateways.status()["test_gateways:Echo"]["told"] == 1

    gatewayed(test)


def test_what_is_wrong_with_files_that_are_read_again_is_told() -> None:
    async def test(echo: Echo, container: Container) -> None:
        text = CONFIGURATION.replace("gatewayed", "renamed")
        problems = container.reconfigure(parse(text, "test"))
        assert problems == ["gateway test_gateways:Echo: word.key: no key"]
        assert echo.told == [("reload",)]

    gatewayed(test)


def test_credit_holds_messages_back() -> None:
    async def test(echo: Echo, _container: Container) -> None:
        seen, inlet = attached(echo, "queue/q", 1)
        for token in range(3):
            post(echo, "queue/q", token + 1)
        assert len(seen.arrivals) == 1
        inlet.grant(5)
        assert echo.door is not None
        echo.door.flush()
        assert len(seen.arrivals) == 3

    gatewayed(test)


def test_an_inlet_may_have_an_address_of_its_own() -> None:
    async def test(echo: Echo, container: Container) -> None:
        seen, inlet = attached(echo, None, 5)
        assert seen.attached.startswith("_reply/gatewayed.")
        post(echo, seen.attached, 1)
        assert len(seen.arrivals) == 1
        inlet.close()
        assert echo.door is not None
        echo.door.flush()
        assert seen.attached.encode() not in container.vhosts[""].space.entries

    gatewayed(test)


def test_the_last_inlet_takes_its_address_along() -> None:
    async def test(echo: Echo, container: Container) -> None:
        inlets = [attached(echo, "unicast/a", 1)[1] for _ in range(2)]
        assert echo.door is not None
        for inlet, is_left in zip(inlets, (True, False), strict=True):
            inlet.close()
            echo.door.flush()
            assert (b"unicast/a" in container.vhosts[""].space.entries) is is_left

    gatewayed(test)


def test_what_may_not_be_is_told() -> None:
    async def test(echo: Echo, _container: Container) -> None:
        seen, _ = attached(echo, "topic/secret", 1)
        assert seen.why_closed is not None
        assert "no permission to receive" in seen.why_closed
        post(echo, "topic/secret", 1)
        assert echo.told[0][:2] == ("outcome", 1)
        assert echo.told[0][2] != Code.ACCEPTED

    gatewayed(test)


def test_a_door_for_nobody_has_nothing_beside_users_whatever_anonymous_clients_have() -> None:
    async def test(echo: Echo, _container: Container) -> None:
        assert echo.context.has_users
        assert echo.context.is_user("echo")
        assert not echo.context.is_user("anonymous")
        echo.door = echo.context.open_door(echo, None)
        seen, _ = attached(echo, "unicast/a", 1)
        assert seen.why_closed is not None
        assert "no permission to receive" in seen.why_closed

    gatewayed(test)


def test_a_door_that_is_closed_from_outside_is_told() -> None:
    async def test(echo: Echo, container: Container) -> None:
        seen, _ = attached(echo, "unicast/a", 1)
        for connection in list(container.peers.connections):
            connection.close()
        container.core.flush()
        for _ in range(3):
            await asyncio.sleep(0)
        assert seen.why_closed is not None
        assert echo.told == [("closed",)]
        assert echo.door is not None
        assert not echo.door.post(b"", 1, is_settled=False)

    gatewayed(test)


def test_a_container_drains_its_gateways_then_closes_them() -> None:
    kept: list[Echo] = []

    async def test(echo: Echo, _container: Container) -> None:
        kept.append(echo)

    gatewayed(test)
    assert kept[0].told == [("drain",), ("close",)]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("[gateway.nothing]", "there is none of this name; installed: "),
        ('[gateway."test_gateways:None_"]', "cannot be loaded"),
        ('[gateway."test_gateways:Echo"]', "word: is missing"),
    ],
)
def test_what_cannot_be_made_is_told(table: str, says: str) -> None:
    with pytest.raises(GatewayError, match=says):
        Container(parse(f'id = "x"\n[[listen]]\nport = 0\n{table}\n', "test"))
