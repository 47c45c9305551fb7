"""The Python client's lines of the table: messages a second, published and consumed.

The client runs in a process of its own, `client_worker.py`; what is at the other end of the
container (a sink, or a second client that publishes presettled batches) is never slower. Three
processes share the machine's cores, so the figure is messages for each CPU second of the measured
process, which is what it would do with a core to itself; the rate beside it is by the clock.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cases import Case, Figure, Sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from server import Server

__all__ = ("CLIENT_CASES",)

_WORKER: Final = Path(__file__).with_name("client_worker.py")
_COUNT: Final = 1_000_000
_TIMEOUT_S: Final = 120
PUBLISHED: Final = "published, messages a CPU second"
CONSUMED: Final = "consumed, messages a CPU second"


def _start(role: str, url: str, manner: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(_WORKER), role, url, manner, str(_COUNT)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _report(process: subprocess.Popen[str]) -> dict[str, float]:
    output, _ = process.communicate(timeout=_TIMEOUT_S)
    return dict(json.loads(output.splitlines()[-1])) if process.returncode == 0 else {}


def _client(manner: str) -> Callable[[Server], Sample]:
    """One client publishes to a sink; then one consumes what another publishes."""

    def run(server: Server) -> Sample:
        url = server.route.receiver_url
        published = _report(_start("publish", url, manner))
        consumer = _start("consume", url, manner)
        assert consumer.stdout is not None
        consumer.stdout.readline()
        source = _start("feed", url, "batches")
        consumed = _report(consumer)
        _report(source)
        if not published or not consumed:
            return Sample({}, problems=["a client failed; its error is above"])
        values = {PUBLISHED: _COUNT / published["cpu_s"], CONSUMED: _COUNT / consumed["cpu_s"]}
        problems = [] if consumed["count"] == _COUNT else [f"{consumed['count']} were consumed"]
        return Sample(values, rate=_COUNT / consumed["seconds"], problems=problems)

    return run


def _case(title: str, manner: str, must: float) -> Case:
    figures = (Figure(PUBLISHED, must, is_floor=True), Figure(CONSUMED, must, is_floor=True))
    return Case(title, figures, _client(manner))


CLIENT_CASES: Final[dict[str, Case]] = {
    "client-batches": _case("Python client, 100 B, batches", "batches", 1_000_000),
    "client-singly": _case("Python client, 100 B, one by one", "singly", 300_000),
}
