"""Streams that nobody reads: of what is appended nothing is kept for readers."""

from __future__ import annotations

from cogwork.nodes.stream import StreamNode

from .linked import linked
from .stories import eventually, story

COUNT = 50


@story
async def test_a_live_end_is_kept_only_while_somebody_reads() -> None:
    async with linked("a-b") as mesh:
        client = await mesh.client("a")
        await client.manage("CREATE", {"type": "stream", "name": "stream/x"}, {"engine": "orb"})
        node = mesh.containers["a"].vhosts[""].nodes["stream/x"]
        assert isinstance(node, StreamNode)
        async with client.stream("x") as stream:
            await stream.append([b"a" * 1000] * COUNT)
            await eventually(lambda: node.status()["next"] == COUNT, "the node has seen them")
            assert node._tail.size_bytes == 0
            async with stream.read("first") as reader:
                assert [(await anext(reader)).offset for _ in range(COUNT)] == list(range(COUNT))
                await stream.append([b"b" * 1000] * COUNT)
                found = [(await anext(reader)).offset for _ in range(COUNT)]
                assert found == list(range(COUNT, 2 * COUNT))
                assert node._tail.size_bytes > COUNT * 1000
            await eventually(lambda: node._tail.size_bytes == 0, "nobody reads any more")
            await stream.append([b"c"])
            async with stream.read("first") as reader:
                assert [(await anext(reader)).offset for _ in range(2 * COUNT + 1)][-1] == 2 * COUNT
