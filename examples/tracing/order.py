"""One order through two containers, a queue, a service and back, as one trace in a file.

python examples/tracing/order.py spans.jsonl
python tools/trace_picture.py spans.jsonl trace.svg
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import httpx
from parts import prices, web, worker

import cogwork

START_S = 10.0


async def main(path: str) -> None:
    """Place one order.

    Args:
        path: Where the spans go.
    """
    with (
        Path(path).open("w", encoding="utf-8") as spans,
        cogwork.testing.container(id="north") as north,
        cogwork.testing.container(f'[[link]]\nurl = "{north}"\n', id="south") as south,
    ):
        ready = [asyncio.Event(), asyncio.Event()]
        tasks = [
            asyncio.create_task(prices(north, spans, ready[0])),
            asyncio.create_task(worker(south, spans, ready[1])),
        ]
        async with asyncio.timeout(START_S):
            await asyncio.gather(*(each.wait() for each in ready))
        app = web(north, spans)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://web") as http,
        ):
            answer = await http.get("/orders/umbrella")
            print(answer.json())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "spans.jsonl"))
