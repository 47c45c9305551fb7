"""Attacks that go on and on, each beside an honest client that must not notice.

    python -m system.attacks NAME WORLD

`ATTACKS` has some for each kind of weakness: gateways, work in one step, shares, reply addresses,
logins, revocation, the broker's own addresses, virtual hosts, anonymous peers, and identities. As a
program, it attacks the container that is described until it is ended. `bench/attacks.py` measures
what an honest client notices; `test_attacks.py` runs all of them for a short time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import zmq
import zmq.auth

import cogwork
from cogwork.amqp.frames import SASL_HEADER, FrameType, encode_frame
from cogwork.amqp.performatives import Attach, Begin, End, Open, Role
from cogwork.amqp.redirect import MESH
from cogwork.amqp.sasl import PLAIN, SaslInit, build_plain, encode_sasl
from cogwork.amqp.terminus import Source, Target
from cogwork.config.password_hash import hash_password

from .attackers import ATTACKER, HELPER, Stranger
from .honest import TESTS, gateway_url
from .raw_logins import log_in
from .stories import QUICKLY
from .zeromq_mesh import gateway, session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from .zeromq_mesh import Client

__all__ = ("ATTACKS", "Attack", "World", "attacking", "world_of")

LIMITS = """
[limits]
unauthenticated = 64
unauthenticated_per_source = 32
held_bytes = 67108864
"""

WORD = "word"

USERS = (
    """
[[vhost]]
name = "other"
"""
    + LIMITS
    + "".join(
        f"""
[[user]]
name = "{name}"
password_hash = "{hash_password(WORD)}"
permissions = [{{ address = "#", rights = ["send", "receive"] }}]
"""
        for name in ("honest", "mallory", "gone")
    )
)

KEYS = 'curve_secret_file = "gateway.key_secret"\ncurve_clients_dir = "clients"\n'


class World(NamedTuple):
    """A running container, as its attackers see it.

    Attributes:
        url: Where it listens.
        endpoint: Where its gateway does; empty where it has none.
        folder: Holds its configuration, `cogwork.toml`, and keys of clients.
        pid: Its process.
    """

    url: str
    endpoint: str
    folder: str
    pid: int

    def url_of(self, user: str, password: str = WORD) -> str:
        """Return the URL for a user."""
        return self.url.replace("://", f"://{user}:{password}@")

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def keys(self, name: str) -> tuple[bytes, bytes, bytes]:
        """Return the keys of a gateway's client."""
        folder = Path(self.folder)
        server, _ = zmq.auth.load_certificate(folder / "gateway.key")
        public, secret = zmq.auth.load_certificate(folder / f"{name}.key_secret")
        assert secret is not None
        made: tuple[bytes, bytes, bytes] = session.Keys(server, public, secret)
        return made


@dataclass(frozen=True)
class Attack:
    """One of them.

    Attributes:
        run: Attacks a container until it is cancelled.
        configuration: The container's.
        kind: What the honest client does.
        user: Who that is; None is anonymous.
    """

    run: Callable[[World], Coroutine[Any, Any, None]]
    configuration: str = LIMITS
    kind: str = "messages"
    user: str | None = None

    def honest_url(self, world: World) -> str:
        """Return what the honest client connects to."""
        if self.kind == "gateway":
            return gateway_url(world.endpoint, world.keys("honest"))
        return world.url if self.user is None else world.url_of(self.user)


@contextlib.contextmanager
def world_of(folder: Path, attack: Attack) -> Iterator[World]:
    """Run a container to be attacked, in a folder that is not there yet."""
    folder.mkdir()
    if attack.kind != "gateway":
        from .served import served  # noqa: PLC0415  # as the other one is imported

        with served(folder, attack.configuration) as container:
            yield World(container.url, "", str(folder), container.process.pid)
        return
    (folder / "clients").mkdir()
    for name in ("gateway", "honest", "mallory", "stranger"):
        zmq.auth.create_certificates(folder, name)
    for name in ("honest", "mallory"):
        (folder / "clients" / f"{name}.key").write_bytes((folder / f"{name}.key").read_bytes())
    with gateway(folder, KEYS, attack.configuration) as running:
        container = running.container
        endpoint = running.kinds["roundrobin"]
        yield World(container.url, endpoint, str(folder), container.process.pid)


@contextlib.contextmanager
def attacking(name: str, world: World) -> Iterator[None]:
    """Have a process attack a container for the length of a block.

    It is one of low priority: attackers have machines of their own, and the container's processor
    is not for them to take.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "system.attacks", name, json.dumps(world)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"attacking\n"
        yield
        assert process.poll() is None, "the attack has ended"
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def again_and_again(attempt: Callable[[], Awaitable[object]], crowd: int = 1) -> None:
    """Have attackers try something at the same time, whatever comes of it."""

    async def go_on() -> None:
        while True:
            with contextlib.suppress(OSError, cogwork.CogworkError, asyncio.IncompleteReadError):
                await attempt()
            await asyncio.sleep(0.001)

    await asyncio.gather(*(go_on() for _ in range(crowd)))


async def until_closed(stranger: Stranger) -> None:
    """Write what waits, waits a moment for the container to end it, and leave."""
    await stranger.drain()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.2):
            await stranger.is_closed()
    stranger.leave()


# -- gateways


async def strangers_of_a_gateway(world: World) -> None:
    """Come with keys that are no user's."""

    async def attempt() -> None:
        made: Client = session.Session(world.endpoint, session="x", keys=world.keys("stranger"))
        made.socket.sndtimeo = 0
        for verb in ("HELLO", "CALL"):
            with contextlib.suppress(zmq.Again):
                made.send(verb, {"id": 1, "address": "$management"})
        await asyncio.sleep(0.02)
        made.socket.close(0)

    await again_and_again(attempt, 16)


async def values_of_a_gateway(world: World) -> None:
    """Send JSON that is dear to read."""
    client: Client = session.Session(world.endpoint, keys=world.keys("mallory"))
    body = list(range(90_000))

    async def attempt() -> None:
        client.send("CAST", {"address": "sink/x"}, body)
        client.ask("PING", {})
        await asyncio.sleep(0)

    await again_and_again(attempt)


# -- work in one step

TOO_DEAR = " OR ".join(["p LIKE '%a%___b%'"] * 120)
DEAR = " OR ".join(["amqp.to = 'b'"] * 120)
BIG: dict[str, object] = {"p": "a" * 200_000}


async def selectors_too_dear(world: World) -> None:
    """Attach links whose selectors are too dear, and publish what they are for."""
    async with cogwork.connect(world.url) as client:

        async def attempt() -> None:
            async with client.subscribe("topic/x", selector=TOO_DEAR) as mine:
                await client.publish("topic/x", b"x", properties=BIG)
                async for _ in mine:
                    pass

        await again_and_again(attempt)


async def subscribed(
    client: cogwork.Client, address: str, selector: str | None = None
) -> asyncio.Task[None]:
    is_attached = asyncio.Event()

    async def read() -> None:
        async with client.subscribe(address, selector=selector) as mine:
            is_attached.set()
            async for _ in mine:
                pass

    task = asyncio.create_task(read())
    await is_attached.wait()
    return task


async def dear_selectors(world: World) -> None:
    """Publish for a hundred subscribers whose selectors are dear, and not too dear."""
    async with cogwork.connect(world.url) as client:
        tasks = [await subscribed(client, "topic/x", DEAR) for _ in range(100)]
        async with client.publisher("topic/x") as publisher:
            await again_and_again(lambda: publisher.send_batch([b"x"] * 20))
        del tasks


async def long_subjects(world: World) -> None:
    """Publish at subjects that are made for patterns which are dear to match."""
    async with cogwork.connect(world.url) as client:
        tasks = [
            await subscribed(client, "topic/" + "*." * at + "#." + "*." * (126 - at) + "x")
            for at in range(126)
        ]
        await again_and_again(lambda: client.publish("topic/" + "a." * 15_000 + "b", b"x"))
        del tasks


async def large_requests(world: World) -> None:
    """Ask `$management` for something by the largest maps that it takes."""
    attributes: dict[str, object] = {f"k{number}": number for number in range(15_000)}
    async with cogwork.connect(world.url) as client:
        await again_and_again(
            lambda: client.manage("CREATE", {"type": "queue", "name": "queue/x"}, attributes), 4
        )


# -- shares


async def connections(world: World) -> None:
    """Connect from two addresses, and never log in."""
    held: list[Stranger] = []

    async def attempt() -> None:
        held.extend([await Stranger.connected(world.url, host) for host in (ATTACKER, HELPER)])
        if len(held) > 100:
            held.pop(0).leave()
            held.pop(0).leave()

    await again_and_again(attempt, 4)


async def sessions(world: World) -> None:
    """Begin sessions and end them."""

    async def attempt() -> None:
        stranger = await Stranger.opened(world.url, ATTACKER)
        for channel in range(1, 1000):
            begin = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)
            stranger.say(begin, channel=channel)
            stranger.say(End(), channel=channel)
        await until_closed(stranger)

    await again_and_again(attempt, 4)


async def attaches(world: World) -> None:
    """Attach a thousand links at once, again and again."""

    async def attempt() -> None:
        stranger = await Stranger.opened(world.url, ATTACKER)
        for handle in range(1000):
            source = Source(address=f"queue/{handle}")
            name = f"r{handle}"
            stranger.say(
                Attach(name=name, handle=handle, role=Role.RECEIVER, source=source, target=Target())
            )
        await until_closed(stranger)

    await again_and_again(attempt, 4)


async def dynamic_addresses(world: World) -> None:
    """Make addresses and leave them."""

    async def attempt() -> None:
        stranger = await Stranger.opened(world.url, ATTACKER)
        for handle in range(500):
            stranger.publish_to(None, handle)
        await until_closed(stranger)

    await again_and_again(attempt, 4)


FRAME = b"\x00" * 32_000


async def unfinished_deliveries(world: World) -> None:
    """Send most of large deliveries, and never their ends."""

    async def attempt() -> None:
        stranger = await Stranger.opened(world.url, ATTACKER)
        stranger.publish_to("queue/a")
        for part in range(400):
            stranger.send_part(0, FRAME, is_first=not part, more=True)
            if not await stranger.drain():
                break
        stranger.leave()

    await again_and_again(attempt, 40)


async def unread_output(world: World) -> None:
    """Subscribe often, publishes much, and read nothing."""
    held = []
    for _ in range(100):
        stranger = await Stranger.opened(world.url, ATTACKER, window=1_000_000, receive_bytes=4096)
        stranger.receive_from("topic/unread", credit=100_000)
        held.append(stranger)

    async def attempt() -> None:
        publisher = await Stranger.opened(world.url, HELPER)
        publisher.publish_to("topic/unread")
        for number in range(50):
            publisher.send_part(number, FRAME[:30_000], is_first=True, more=False)
            await publisher.drain()
        publisher.leave()

    await again_and_again(attempt)


async def queues(world: World) -> None:
    """Make a queue with each message."""
    async with cogwork.connect(world.url) as client, client.publisher() as publisher:
        count = 0

        async def attempt() -> None:
            nonlocal count
            count += 100
            await publisher.send_batch(
                [cogwork.Message(b"x", to=f"queue/made-{count + each}") for each in range(100)]
            )

        await again_and_again(attempt)


# -- who one is


async def forged_replies(world: World) -> None:
    """Send replies to addresses and with ids that somebody might guess."""
    async with (
        cogwork.connect(world.url_of("mallory")) as client,
        client.publisher() as publisher,
    ):
        forged = [
            cogwork.Message("forged", to=f"_reply/container/{number}", correlation_id=str(number))
            for number in range(200)
        ]
        await again_and_again(lambda: publisher.send_batch(forged))


async def wrong_passwords(world: World) -> None:
    """Log in by wrong passwords of the honest client's user."""
    await again_and_again(lambda: log_in(world.port, ATTACKER, "honest", "wrong"), 60)


async def revoked_users(world: World) -> None:
    """Is removed, and comes again."""
    clients = []
    for _ in range(20):
        client = cogwork.connect(world.url_of("gone"), retry=QUICKLY)
        await client.__aenter__()
        clients.append(client)
    file = Path(world.folder) / "cogwork.toml"
    file.write_text(file.read_text().replace('name = "gone"', 'name = "new"'))
    os.kill(world.pid, signal.SIGHUP)
    await again_and_again(lambda: log_in(world.port, ATTACKER, "gone", WORD), 20)


async def own_addresses(world: World) -> None:
    """Ask for what is the broker's own."""
    async with cogwork.connect(world.url_of("mallory")) as client:

        async def attempt() -> None:
            for address in ("$management", "stream/$security", "_reply/#", "$audit"):
                with contextlib.suppress(cogwork.CogworkError):
                    async with client.consume(address):
                        pass

        await again_and_again(attempt, 8)


async def other_virtual_hosts(world: World) -> None:
    """Use a virtual host where nothing is permitted."""
    async with cogwork.connect(f"{world.url_of('mallory')}/other") as client:
        await again_and_again(lambda: client.publish("queue/a", b"x"), 8)


async def anonymous_peers(world: World) -> None:
    """Open without a name."""

    async def attempt() -> None:
        stranger = await Stranger.opened(world.url, ATTACKER)
        stranger.publish_to("queue/a")
        await until_closed(stranger)

    await again_and_again(attempt, 32)


async def foreign_names(world: World) -> None:
    """Log in to act as somebody else, and open as a container."""

    async def act_as_another() -> None:
        stranger = await Stranger.connected(world.url, ATTACKER)
        said = SaslInit(mechanism=PLAIN, initial_response=build_plain("mallory", WORD, "honest"))
        stranger.write(SASL_HEADER + encode_frame(0, encode_sasl(said), FrameType.SASL))
        await stranger.drain()
        await asyncio.sleep(0.1)
        stranger.leave()

    async def link() -> None:
        stranger = await Stranger.connected(world.url, ATTACKER)
        stranger.write(b"AMQP\x00\x01\x00\x00")
        stranger.say(Open(container_id="north", properties={MESH: 1}))
        await until_closed(stranger)

    await asyncio.gather(again_and_again(act_as_another, 16), again_and_again(link, 16))


IN_A_GATEWAY = """
[anonymous]
permissions = [
    { address = "#", rights = ["receive"] },
    { address = "$management", rights = ["send", "receive", "manage"] },
]
[[user]]
name = "honest"
permissions = [{ address = "unicast/#", rights = ["send", "receive"] }]

[[user]]
name = "mallory"
permissions = [{ address = "sink/#", rights = ["send"] }]
"""

ATTACKS = {
    "strangers_of_a_gateway": Attack(strangers_of_a_gateway, IN_A_GATEWAY, "gateway"),
    "values_of_a_gateway": Attack(values_of_a_gateway, IN_A_GATEWAY, "gateway"),
    "selectors_too_dear": Attack(selectors_too_dear),
    "dear_selectors": Attack(dear_selectors),
    "long_subjects": Attack(long_subjects),
    "large_requests": Attack(large_requests),
    "connections": Attack(connections),
    "sessions": Attack(sessions),
    "attaches": Attack(attaches),
    "dynamic_addresses": Attack(dynamic_addresses),
    "unfinished_deliveries": Attack(unfinished_deliveries),
    "unread_output": Attack(unread_output),
    "queues": Attack(queues),
    "forged_replies": Attack(forged_replies, USERS, "calls", "honest"),
    "wrong_passwords": Attack(wrong_passwords, USERS, "logins", "honest"),
    "revoked_users": Attack(revoked_users, USERS, user="honest"),
    "own_addresses": Attack(own_addresses, USERS, user="honest"),
    "other_virtual_hosts": Attack(other_virtual_hosts, USERS, user="honest"),
    "anonymous_peers": Attack(anonymous_peers, USERS, user="honest"),
    "foreign_names": Attack(foreign_names, USERS, user="honest"),
}
"""By what they do; `Attack.kind` says what the honest client does meanwhile."""


def main(name: str, world: str) -> None:
    os.nice(19)
    sys.stdout.write("attacking\n")
    sys.stdout.flush()
    asyncio.run(ATTACKS[name].run(World(*json.loads(world))))


if __name__ == "__main__":
    main(*sys.argv[1:])
