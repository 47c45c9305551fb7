"""Queues on disk through the command line: declared, filled, killed, there again, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .meshes import Member, meshed
from .served import within

if TYPE_CHECKING:
    from pathlib import Path

QUEUE = "queue/kept"
ITEMS = [str(number) for number in range(500)]


def kill(member: Member) -> None:
    """Kill the container, and start it again."""
    member.kill()
    member.start()
    within(30.0, member.listens, "the container listens")


def received(member: Member, count: int) -> list[str]:
    return member.served.run(
        "receive", member.url, QUEUE, "--count", str(count), "--timeout", "10"
    ).splitlines()


def test_a_declared_queue_and_its_items_outlive_kills(tmp_path: Path) -> None:
    head = f'data_dir = "{tmp_path}/data"\n'
    lines = tmp_path / "items"
    lines.write_text("".join(f"{item}\n" for item in ITEMS))
    with meshed(tmp_path, ["box"], [], head=lambda _name: head) as members:
        box = members["box"]
        declared = ("declare", box.url, QUEUE, "--durability", "disk", "--option", "priorities=3")
        box.served.run("queue", *declared)
        box.served.run("send", box.url, QUEUE, "--file", str(lines), "--durable")
        kill(box)
        box.served.run("queue", *declared)  # it has these options already
        assert received(box, 200) == ITEMS[:200]
        kill(box)
        assert box.served.address(QUEUE)["depth"] == 300
        assert received(box, 300) == ITEMS[200:]
        kill(box)
        assert box.served.address(QUEUE)["depth"] == 0
        assert QUEUE in [row["address"] for row in box.served.status()["queues"]]
