"""The sixth act: the stream becomes a table, and Spark is asked what pandas was asked.

Each step is a command that anybody could type. None of them knows that a container was killed in
the middle of the stream, and that another one is still dead.
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


@dataclass
class Archived:
    """What came of the act.

    Attributes:
        rows: How many records the table has.
        delays: The mean delay on arrival, in minutes, by carrier, as Spark has it.
        took_s: Seconds until every record was in the table.
    """

    rows: int = 0
    delays: dict[str, float] = field(default_factory=dict)
    took_s: float = 0.0


async def archive_and_ask(url: str, stream: str, folder: Path, advance: Advance) -> Archived:
    """Archives a stream into a folder, and has a job of PySpark read it there."""
    archived = Archived()
    started_s = time.perf_counter()
    told = await _pipeline("archive", url, stream, "--to", str(folder), "--once", "--json")
    archived.took_s = time.perf_counter() - started_s
    archived.rows = int(told["rows"])
    advance("archived", archived.rows)
    archived.delays = await _pipeline("run", str(JOB), str(folder), stream)
    advance("carriers", len(archived.delays))
    return archived


async def _pipeline(*arguments: str) -> dict[str, Any]:
    """Runs `cogwork pipeline`, and returns the JSON object that it printed last.

    Raises:
        SystemExit: It failed.
    """
    process = await asyncio.create_subprocess_exec(
        *PIPELINE, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    printed, complained = await process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"cogwork pipeline {arguments[0]} failed:\n{complained.decode()}")
    found: dict[str, Any] = json.loads(printed.decode().splitlines()[-1])
    return found
