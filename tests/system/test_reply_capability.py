"""A reply address is a capability: not to be guessed, enough to reply, and for one receiver."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING

import pytest
from call_ends import server_of

import cogwork
from cogwork import testing
from cogwork.amqp.types import ULong
from cogwork.config.password_hash import hash_password

from .linked import linked
from .stories import story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from cogwork.rpc.serving.service import Service

PASSWORD = "pass"  # of a container that lives for a test
HASH = hash_password(PASSWORD)

USERS = f"""
[[user]]
name = "caller"
password_hash = "{HASH}"
permissions = [
    {{ address = "unicast/#", rights = ["send"] }},
    {{ address = "exclusive/#", rights = ["send"] }},
    {{ address = "broadcast/#", rights = ["send"] }},
]

[[user]]
name = "server"
password_hash = "{HASH}"
permissions = [
    {{ address = "unicast/#", rights = ["receive"] }},
    {{ address = "exclusive/#", rights = ["receive"] }},
    {{ address = "broadcast/#", rights = ["receive"] }},
]

[[user]]
name = "mallory"
password_hash = "{HASH}"
permissions = [{{ address = "#", rights = ["send", "receive"] }}]
"""

CALLS = 200

MessageId = int | bytes | str


def url_of(url: str, user: str) -> str:
    """Return a container's URL for a user."""
    return url.replace("://", f"://{user}:{PASSWORD}@")


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """A container with users, by its URL."""
    with testing.container(USERS) as url:
        yield url


def echoing(mesh: cogwork.Client, seen: list[cogwork.Message]) -> Service:
    """Make a service that notes the requests that it takes."""
    service = server_of(mesh.service("echo", server="1"))

    @service.method
    async def echo(value: int) -> int:
        await asyncio.sleep(0)
        return value

    admit = service._admit

    def noting(inbox: object, sender: object, request: cogwork.Message, *rest: object) -> bool:
        seen.append(request)
        return bool(admit(inbox, sender, request, *rest))  # type: ignore[arg-type]  # passed on

    service._admit = noting  # type: ignore[assignment,method-assign]  # a service that spies
    return service


async def forging(mesh: cogwork.Client, addresses: list[str]) -> AsyncIterator[int]:
    """Send replies with ids that somebody might guess, again and again."""
    ids: list[MessageId] = [*map(ULong, range(1, CALLS)), b"\0" * 16, "1", "A" * 24]
    async with mesh.publisher() as out:
        while True:
            forged = [
                cogwork.Message("forged", to=address, correlation_id=number)
                for address in addresses
                for number in ids
            ]
            outcomes = await out.send_batch(forged)
            yield sum(outcome.is_accepted for outcome in outcomes)


@story
async def test_who_serves_needs_no_grant_and_a_forged_reply_is_never_taken(guarded: str) -> None:
    seen: list[cogwork.Message] = []
    async with (
        cogwork.connect(url_of(guarded, "server")) as server,
        cogwork.connect(url_of(guarded, "caller")) as caller,
        cogwork.connect(url_of(guarded, "mallory")) as mallory,
        echoing(server, seen),
    ):
        assert await caller.call("echo", "echo", value=-1) == -1
        known = seen[0].reply_to
        assert known is not None
        guesses = [f"{known.rpartition('/')[0]}/{number}" for number in range(1, 20)]
        # Mallory knows the address itself, too, as one who has served a call does.
        rounds, taken = forging(mallory, [*guesses, known]), [0]

        async def attack() -> None:
            async for accepted in rounds:
                taken[0] = max(taken[0], accepted)

        attacker = asyncio.create_task(attack())
        while not taken[0]:
            await asyncio.sleep(0.01)
        for value in range(CALLS):
            assert await caller.call("echo", "echo", value=value, timeout_s=20) == value
        attacker.cancel()
        await asyncio.gather(attacker, return_exceptions=True)
        assert 0 < taken[0] <= CALLS + 2  # what went to the known address, and nowhere else
        ids = [request.message_id for request in seen]
        assert len(set(ids)) == len(ids) == CALLS + 1
        assert all(isinstance(each, str) and len(each) == 24 for each in ids)


@story
async def test_replies_to_plain_requests_cannot_be_forged(guarded: str) -> None:
    seen: list[cogwork.Message] = []

    async def handle(request: cogwork.Message) -> object:
        seen.append(request)
        ids: list[MessageId] = [*map(ULong, range(20)), b"", b"\0" * 16]
        async with mallory.publisher() as out:
            await out.send_batch(
                cogwork.Message("forged", to=request.reply_to, correlation_id=number)
                for number in ids
            )
        return request.body

    async with (
        cogwork.connect(url_of(guarded, "server")) as server,
        cogwork.connect(url_of(guarded, "caller")) as caller,
        cogwork.connect(url_of(guarded, "mallory")) as mallory,
        server.serve("unicast/plain", handle),
    ):
        for value in range(10):
            reply = await caller.request("unicast/plain", value, timeout_s=20)
            assert reply.body == value


@story
async def test_only_its_connection_receives_from_a_reply_address_and_guesses_lead_nowhere(
    guarded: str,
) -> None:
    seen: list[cogwork.Message] = []
    async with (
        cogwork.connect(url_of(guarded, "server")) as server,
        cogwork.connect(url_of(guarded, "caller")) as caller,
        cogwork.connect(url_of(guarded, "mallory")) as mallory,
        cogwork.connect(url_of(guarded, "caller")) as other,
        echoing(server, seen),
    ):
        assert await caller.call("echo", "echo", value=1) == 1
        assert await other.call("echo", "echo", value=2) == 2
        addresses = [str(each.reply_to) for each in seen]
        assert len(set(addresses)) == 2
        for address in addresses:
            home, _, token = address.rpartition("/")
            assert len(base64.urlsafe_b64decode(token + "==")) == 16
            for tried in (address, f"/{address}", f"{home}/#", "_reply/#"):
                with pytest.raises(cogwork.LinkRefused, match="only the connection that made it"):
                    async with mallory.consume(tried):
                        pass
            for number in range(5):
                with pytest.raises(cogwork.NotFound, match="no such reply address"):
                    async with mallory.publisher(f"{home}/{number}"):
                        pass
        assert await caller.call("echo", "echo", value=3) == 3


@story
async def test_a_reply_address_is_enough_to_reply_from_a_linked_container() -> None:
    async with linked("a-b", configuration=USERS + "[anonymous]\nmesh = true\n") as mesh:
        urls = {name: each.endpoints[0] for name, each in mesh.containers.items()}
        async with (
            cogwork.connect(url_of(urls["a"], "server")) as server,
            cogwork.connect(url_of(urls["b"], "caller")) as caller,
            echoing(server, []),
        ):
            await mesh.settle()
            assert await caller.call("echo", "echo", value=1, timeout_s=20) == 1
