"""Datagrams between real containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .linked import linked
from .proxy import FaultyProxy
from .stories import eventually, story

if TYPE_CHECKING:
    import pytest

    from .linked import Linked

COUNT = 5_000
MIB = 1 << 20


def collected(mesh: Linked, name: str) -> list[tuple[str, bytes]]:
    """Gather what comes to a container."""
    taken: list[tuple[str, bytes]] = []
    mesh.containers[name].mesh.datagrams.take = lambda origin, data: taken.append(
        (origin, bytes(data))
    )
    return taken


@story
async def test_datagrams_cross_containers_in_order() -> None:
    async with linked("a-b", "b-c") as mesh:
        taken = collected(mesh, "c")
        sender = mesh.containers["a"]
        for number in range(COUNT):
            assert sender.mesh.datagrams.send("c", number.to_bytes(4, "big"))
        sender.core.flush()
        await eventually(lambda: len(taken) == COUNT, "all have come")
        assert taken == [("a", number.to_bytes(4, "big")) for number in range(COUNT)]
        assert mesh.containers["b"].mesh.datagrams.passed == COUNT


@story
async def test_large_ones_are_cut_into_frames_and_too_many_are_dropped() -> None:
    async with linked("a-b") as mesh:
        taken = collected(mesh, "b")
        datagrams = mesh.containers["a"].mesh.datagrams
        large = bytes(range(256)) * (4 * MIB // 256)
        went = sum(datagrams.send("b", large) for _ in range(40))
        mesh.containers["a"].core.flush()
        assert 16 <= went < 40
        assert datagrams.dropped == 40 - went
        await eventually(lambda: len(taken) == went, "what was not dropped has come")
        assert set(taken) == {("a", large)}


@story
async def test_one_at_which_its_container_fails_is_told_and_costs_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with linked("a-b") as mesh:
        taken: list[bytes] = []

        def take(_origin: str, data: memoryview) -> None:
            if data == b"bad":
                raise KeyError("a fault of ours")
            taken.append(bytes(data))

        mesh.containers["b"].mesh.datagrams.take = take
        for each in (b"1", b"bad", b"2", b"3"):
            assert mesh.containers["a"].mesh.datagrams.send("b", each)
        mesh.containers["a"].core.flush()
        await eventually(lambda: taken == [b"1", b"2", b"3"], "the others have come")
        assert "link to container a: 'a fault of ours'" in caplog.text


@story
async def test_a_link_whose_line_is_slow_stays(caplog: pytest.LogCaptureFixture) -> None:
    async with linked("a") as mesh, FaultyProxy(f"amqp://{mesh.address('a')}") as line:
        await mesh.start("b", configuration=f'[[link]]\nurl = "{line.url}"\n')
        await mesh.settle()
        taken = collected(mesh, "b")
        line.slow(4 * MIB)
        large = bytes(4 * MIB)
        for _ in range(3):
            assert mesh.containers["a"].mesh.datagrams.send("b", large)
        mesh.containers["a"].core.flush()
        await eventually(lambda: len(taken) == 3, "all have come")
        assert "silent" not in caplog.text, "hellos wait behind what is large"


@story
async def test_they_take_the_other_way_where_one_is_cut() -> None:
    async with linked("a-b", "b-c", "a-d", "d-c") as mesh:
        taken = collected(mesh, "c")
        datagrams = mesh.containers["a"].mesh.datagrams
        between = mesh.containers["a"].mesh.mesh.next_hop("c")
        assert between is not None
        mesh.cut_off(between)

        def has_arrived() -> bool:
            datagrams.send("c", b"again")
            mesh.containers["a"].core.flush()
            return bool(taken)

        await eventually(has_arrived, "one has come the other way")
        assert mesh.containers["a"].mesh.mesh.next_hop("c") != between
