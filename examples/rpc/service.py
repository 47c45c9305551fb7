"""Serves the topic `compute`: several of these share the calls. Ctrl-C ends it in order.

cogwork serve                                # in one terminal
python examples/rpc/serving/service.py host-1        # in others
python examples/rpc/calls.py
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import cogwork

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass
class Vm:
    """A machine that was started."""

    number: int
    host: str
    since: datetime


async def main(url: str, host: str) -> None:
    """Serve until it is stopped."""
    vms: dict[int, Vm] = {}
    async with cogwork.connect(url, direct=True) as client:
        service = client.service("compute", server=host)

        @service.method
        async def start(vm: int) -> Vm:
            vms[vm] = Vm(vm, host, datetime.now(UTC))
            return vms[vm]

        @service.method
        async def stop(vm: int) -> None:
            del vms[vm]

        @service.method
        async def console(vm: int, lines: int = 10) -> AsyncIterator[str]:
            for number in range(lines):
                yield f"vm {vm} on {host}, line {number}"
                await asyncio.sleep(0.1)

        async with service:
            print(f"{host} serves compute at {url}")
            await service.wait()


if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else "host-1"
    where = sys.argv[2] if len(sys.argv) > 2 else "amqp://127.0.0.1"
    with suppress(KeyboardInterrupt):
        asyncio.run(main(where, name))
