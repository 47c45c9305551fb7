"""Runs the cases and writes the tables in docs/performance.md.

    python bench/run.py [--case NAME]... [--runs N] [--serve COMMAND] [--no-table]

Each case prints one JSON line: the medians, every run's value, the limits and whether they hold.
The exit code is 1 where a limit does not hold or anything was lost.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from typing import Final

import click
import msgspec
from cases import CASES, Case, Figure, Sample
from clients import CLIENT_CASES
from mesh_cases import MESH_CASES
from report import Line, Measured, Table, write_table
from server import DEFAULT_COMMAND, ServerError

from cogwork.bench.url import PeerError
from cogwork.client import ClientError

_PAGE: Final = Path(__file__).parent.parent / "docs" / "performance.md"
_TABLES: Final[tuple[tuple[Table, dict[str, Case]], ...]] = (
    (Table("", "raw relay in the same run"), {**CASES, **CLIENT_CASES}),
    (Table("linked containers, ", "in the same run"), MESH_CASES),
)
_ALL: Final[dict[str, Case]] = {name: case for _, cases in _TABLES for name, case in cases.items()}


@click.command()
@click.option("--case", "names", multiple=True, type=click.Choice(list(_ALL)), help="Repeatable.")
@click.option("--runs", default=5, show_default=True, type=click.IntRange(1))
@click.option("--serve", default=DEFAULT_COMMAND, show_default=True, help="{config}, {port}")
@click.option("--table/--no-table", default=True, help="Write docs/performance.md.")
def main(names: tuple[str, ...], runs: int, serve: str, table: bool) -> None:
    """Measure a fresh server for each case, and the raw relay beside it."""
    lines: dict[str, Line] = {}
    try:
        for name in names or tuple(_ALL):
            lines[name] = _measure(name, _ALL[name], runs, serve)
            click.echo(msgspec.json.encode(lines[name]).decode())
    except ServerError as error:
        raise click.ClickException(str(error)) from None
    for page_table, cases in _TABLES:
        if table and cases.keys() <= lines.keys():
            write_table(_PAGE, page_table, [lines[name] for name in cases], runs)
    sys.exit(0 if all(line.holds for line in lines.values()) else 1)


def _measure(name: str, case: Case, runs: int, serve: str) -> Line:
    samples: list[Sample] = []
    problems: list[str] = []
    with case.place(serve) as place:
        for _ in range(runs):
            try:
                sample = case.run(place)
            except (PeerError, ClientError, TimeoutError) as error:
                sample = Sample({}, problems=[str(error)])
            problems += sample.problems
            if sample.values and not sample.problems:
                samples.append(sample)
    return Line(
        case=name,
        title=case.title,
        figures=[_median(figure, samples) for figure in case.figures],
        rate=median(sample.rate for sample in samples) if samples else 0.0,
        relay=_medians(samples),
        problems=sorted(set(problems)),
    )


def _median(figure: Figure, samples: list[Sample]) -> Measured:
    runs = [sample.values[figure.name] for sample in samples]
    value = median(runs) if runs else None
    return Measured(
        name=figure.name,
        median=value,
        runs=runs,
        must=figure.must,
        is_floor=figure.is_floor,
        holds=value is not None and figure.holds(value),
    )


def _medians(samples: list[Sample]) -> dict[str, float]:
    names = samples[0].relay if samples else {}
    return {name: median(sample.relay[name] for sample in samples) for name in names}


if __name__ == "__main__":
    main()
