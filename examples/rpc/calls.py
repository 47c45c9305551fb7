"""Calls what `service.py` serves.

python examples/rpc/calls.py [URL]
"""

from __future__ import annotations

import asyncio
import sys

import cogwork


async def main(url: str) -> None:
    """Start a machine, looks at its console, and stop it; then what goes wrong."""
    async with cogwork.connect(url, direct=True) as client:
        vm = await client.call("compute", "start", vm=7, timeout_s=5)
        print("started:", vm)
        async for line in client.call_stream(
            "compute", "console", server=vm["host"], vm=7, lines=3
        ):
            print(line)
        await client.cast("compute", "stop", server=vm["host"], vm=7)
        for wrong in (
            client.call("compute", "start", vm="seven"),
            client.call("compute", "stop", server=vm["host"], vm=99),
            client.call("compute", "start", server="nobody", timeout_s=0.5, vm=1),
        ):
            try:
                await wrong
            except cogwork.CogworkError as error:
                print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "amqp://127.0.0.1"))
