"""The sixth act: the stream becomes a table, and Spark is asked what pandas was asked.

Each step is a command that anybody could type. None of them knows that a container was killed in
the middle of the stream, and that another one is still dead. What the containers told of themselves
and of the replicated queue's items is archived too: the audit and the analytics read it there.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Advance = Callable[[str, int], None]

__all__ = ("Archived", "archive_and_ask")

PIPELINE = (sys.executable, "-m", "cogwork.cli.main", "pipeline")
JOB = Path(__file__).with_name("carriers.py")
VIOLATED = 9
"""How an audit ends that has found something."""

TOLD = ("$audit", "$telemetry")
"""The streams that the containers themselves append to."""


@dataclass
class Archived:
    """What came of the act.

    Attributes:
        rows: How many records the table has.
        delays: The mean delay on arrival, in minutes, by carrier, as Spark has it.
        took_s: Seconds until every record was in the table.
        claims: What the audit looked at.
        holding: How many of these claims it found to hold.
        processed: How many items of the queue were processed, as the audit says.
        pages: The reports for people.
    """

    rows: int = 0
    delays: dict[str, float] = field(default_factory=dict)
    took_s: float = 0.0
    claims: int = 0
    holding: int = 0
    processed: int = 0
    pages: list[Path] = field(default_factory=list)


async def archive_and_ask(
    url: str, stream: str, queue: str, folders: tuple[Path, Path], advance: Advance
) -> Archived:
    """Archive a stream, has a job of PySpark read it, and have everything audited.

    Args:
        url: A container's.
        stream: The stream's address.
        queue: The address of the queue whose items are followed.
        folders: Where the archive is to be, and where the reports.
        advance: Told of each step.
    """
    archive, reports = folders
    reports.mkdir(parents=True, exist_ok=True)
    archived = Archived(pages=[reports / "audit.html", reports / "analytics.html"])
    audit_page, analytics_page = map(str, archived.pages)
    started_s = time.perf_counter()
    told = await _pipeline("archive", url, stream, *TOLD, "--to", str(archive), "--once", "--json")
    archived.took_s = time.perf_counter() - started_s
    rows = {each["stream"]: each["rows"] for each in told["streams"]}
    archived.rows = rows[stream.partition("/")[2]]
    advance("records archived", archived.rows)
    archived.delays = await _pipeline("run", str(JOB), str(archive), stream.partition("/")[2])
    advance("carriers by Spark", len(archived.delays))
    found = await _pipeline("audit", "--archive", str(archive), "--html", audit_page, "--json")
    archived.claims = len(found["checks"])
    archived.holding = sum(check["verdict"] == "holds" for check in found["checks"])
    archived.processed = max(
        check["figures"].get("processed", 0) for check in found["checks"] if check["about"] == queue
    )
    advance("reports written", 1)
    await _pipeline("analytics", "--archive", str(archive), "--html", analytics_page, "--json")
    advance("reports written", 1)
    return archived


async def _pipeline(*arguments: str) -> dict[str, Any]:
    """Run `cogwork pipeline`, and return the JSON object that it printed last.

    Raises:
        SystemExit: It failed.
    """
    process = await asyncio.create_subprocess_exec(
        *PIPELINE, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    printed, complained = await process.communicate()
    if process.returncode not in (0, VIOLATED):
        raise SystemExit(f"cogwork pipeline {arguments[0]} failed:\n{complained.decode()}")
    found: dict[str, Any] = json.loads(printed.decode().splitlines()[-1])
    return found
