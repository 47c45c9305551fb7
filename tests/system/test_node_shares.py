"""Who makes more queues and streams than its share is refused; a client from elsewhere goes on.

The attackers come from other addresses of the loopback network than the honest client.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.amqp.performatives import Transfer
from cogwork.container.connections.shares import ALL, Holder

from .attackers import ATTACKER, HELPER, Stranger, refusal
from .honest import undisturbed
from .stories import eventually, story
from .test_shares import limited, told_users

if TYPE_CHECKING:
    from cogwork.container.container import Container

SOURCE_QUEUES = "source '127.0.0.2' has 3 queues, which is the limit (limits.queues_per_source = 3)"


def has(container: Container, kind: str, *makers: Holder) -> list[int]:
    """Return how many each has."""
    return [container.node_shares.count_of(kind, each) for each in makers or (ALL,)]


@story
async def test_queues_made_by_attaching_have_shares() -> None:
    async with (
        limited("queues_per_source = 3") as container,
        undisturbed(container.endpoints[0]),
    ):
        attacker = await Stranger.opened(container.endpoints[0], ATTACKER)
        for handle in range(3):
            attacker.publish_to(f"queue/{handle}", handle)
        attacker.publish_to("queue/0", 3)  # is there already
        attacker.publish_to("queue/one-more", 4)
        assert refusal(await attacker.error()) == SOURCE_QUEUES
        assert len(container.links) >= 4
        reader = await Stranger.opened(container.endpoints[0], ATTACKER)
        reader.receive_from("queue/one-more", credit=1)
        assert refusal(await reader.error()) == SOURCE_QUEUES
        helper = await Stranger.opened(container.endpoints[0], HELPER)
        helper.publish_to("queue/helper")
        await eventually(lambda: "queue/helper" in container.vhosts[""].nodes, "it has a share")
        assert "queue/one-more" not in container.vhosts[""].nodes
        for each in (attacker, reader, helper):
            each.leave()


@story
async def test_queues_made_by_messages_have_shares() -> None:
    async with (
        limited("queues_per_source = 3") as container,
        cogwork.connect(container.endpoints[0]) as client,
    ):
        for number in range(3):
            await client.publish(f"queue/{number}", b"x")
        with pytest.raises(cogwork.LinkRefused, match=r"limits.queues_per_source = 3"):
            await client.publish("queue/one-more", b"x")
        assert "queue/one-more" not in container.vhosts[""].nodes
        await client.publish("queue/0", b"x")
        assert has(container, "queue", Holder("source", "127.0.0.1"), ALL) == [3, 3]


@story
async def test_declared_queues_and_streams_have_shares_and_give_them_back() -> None:
    async with (
        limited("queues_per_source = 2\nstreams = 1") as container,
        cogwork.connect(container.endpoints[0]) as client,
    ):
        await create(client, "queue/a", "queue/b", "queue/b")
        with pytest.raises(cogwork.LinkRefused, match="has 2 queues, which is the limit") as error:
            await create(client, "queue/c")
        assert error.value.condition == "amqp:resource-limit-exceeded"
        await client.manage("DELETE", {"type": "queue", "name": "queue/a"})
        await create(client, "queue/c", "stream/a")
        with pytest.raises(cogwork.LinkRefused, match=r"the container has 1 streams.*limits\.st"):
            await create(client, "stream/b")
        with pytest.raises(cogwork.LinkRefused, match="the container has 1 streams"):
            async with client.publisher("stream/b"):
                pass
        await client.manage("DELETE", {"type": "stream", "name": "stream/a"})
        await create(client, "stream/b")
        assert has(container, "queue") == [2]
        assert has(container, "stream") == [1]


@story
async def test_a_user_has_a_share_and_another_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async with limited("queues_per_user = 2", told_users(monkeypatch)) as container:
        ann, bob = (container.endpoints[0].replace("://", f"://{it}:pw@") for it in ("ann", "bob"))
        async with cogwork.connect(ann) as hers, cogwork.connect(bob) as his:
            await hers.publish("queue/a", 1)
            await hers.publish("queue/b", 2)
            with pytest.raises(cogwork.LinkRefused, match="user 'ann' has 2 queues"):
                async with hers.publisher("queue/c"):
                    pass
            await his.publish("queue/c", 3)
            await hers.publish("queue/c", 4)
        assert has(container, "queue", Holder("user", "ann"), Holder("user", "bob")) == [2, 1]


@story
async def test_what_the_disk_and_the_configuration_declare_is_the_containers(
    tmp_path: Path,
) -> None:
    """It is never refused, even where that is more than there may be by now."""
    kept = f'data_dir = "{tmp_path}"\n[[queue]]\naddress = "queue/told"'
    async with (
        limited("queues_per_source = 3", top=kept) as container,
        cogwork.connect(container.endpoints[0]) as client,
    ):
        for number in range(3):
            await create(client, f"queue/{number}", durability="disk")
        assert has(container, "queue", Holder("source", "127.0.0.1"), ALL) == [3, 4]
    async with (
        limited("queues_per_source = 2\nqueues = 2", top=kept) as container,
        cogwork.connect(container.endpoints[0]) as client,
    ):
        assert has(container, "queue", Holder("source", "127.0.0.1"), ALL) == [0, 4]
        await client.publish("queue/told", b"x")
        with pytest.raises(cogwork.LinkRefused, match="the container has 4 queues"):
            await create(client, "queue/one-more")


@story
async def test_a_source_that_makes_too_many_a_second_waits_and_is_refused() -> None:
    async with (
        limited("declaration_rate_per_source = 3.0") as container,
        undisturbed(container.endpoints[0]),
    ):
        attacker = await Stranger.opened(container.endpoints[0], ATTACKER)
        for handle in range(60):
            attacker.publish_to(f"queue/{handle}", handle)
        assert refusal(await attacker.error()) == (
            "source '127.0.0.2' makes too many queues and streams a second "
            "(limits.declaration_rate_per_source = 3)"
        )
        (inside,) = has(container, "queue", Holder("source", ATTACKER))
        assert 6 <= inside <= 12
        await eventually(
            lambda: has(container, "queue", Holder("source", ATTACKER)) > [inside],
            "one that waited is made",
        )
        attacker.leave()


@story
async def test_credit_behind_an_attach_that_has_to_wait_counts() -> None:
    async with (
        limited("declaration_rate_per_source = 3.0") as container,
        cogwork.connect(container.endpoints[0]) as client,
    ):
        early = await Stranger.opened(container.endpoints[0], ATTACKER)
        for handle in range(1, 8):
            early.publish_to(f"queue/{handle}", handle)
        early.receive_from("queue/late", credit=5)
        await client.publish("queue/late", b"x")
        assert await early.hears(Transfer)
        early.leave()


@story
async def test_requests_and_messages_that_make_too_many_a_second_are_refused() -> None:
    async with (
        limited("declaration_rate_per_source = 0.001") as container,
        cogwork.connect(container.endpoints[0]) as client,
    ):
        await create(client, "queue/a")
        with pytest.raises(cogwork.LinkRefused, match="makes too many queues and streams") as error:
            await create(client, "queue/b")
        assert error.value.condition == "amqp:resource-limit-exceeded"
        with pytest.raises(cogwork.LinkRefused, match="makes too many queues and streams"):
            await client.publish("queue/b", b"x")
        await client.publish("queue/a", b"x")


@story
async def test_queues_on_disk_take_no_descriptors_until_a_share_ends(tmp_path: Path) -> None:
    """Nor do streams: they share the write-ahead log."""
    limits = "queues_per_source = 40\nstreams_per_source = 20"
    async with (
        limited(limits, top=f'data_dir = "{tmp_path}"') as container,
        undisturbed(container.endpoints[0]),
        cogwork.connect(container.endpoints[0]) as client,
    ):
        await create(client, "queue/first", durability="disk")
        await create(client, "stream/first")
        before = open_files()
        for number in range(39):
            await create(client, f"queue/{number}", durability="disk")
            await client.publish(f"queue/{number}", b"x")
        for number in range(19):
            await create(client, f"stream/{number}")
            await client.publish(f"stream/{number}", b"x")
        for kind in ("queue", "stream"):
            with pytest.raises(cogwork.LinkRefused, match=f"limits.{kind}s_per_source"):
                await create(client, f"{kind}/one-more")
        assert open_files() - before < 10


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def create(client: cogwork.Client, *names: str, **options: object) -> None:
    for name in names:
        entity = {"type": name.partition("/")[0], "name": name}
        await client.manage("CREATE", entity, dict(options))
