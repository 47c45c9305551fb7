"""`cogwork bench`: a load generator."""

from __future__ import annotations

import click

from cogwork.cli.unfinished import unfinished

__all__ = ("bench",)


@click.command()
@click.argument("url")
@click.option("--pid", type=int, help="The server's process, to measure its CPU time.")
@click.option("--json", "as_json", is_flag=True, help="The figures as one JSON object.")
def bench(url: str, pid: int | None, as_json: bool) -> None:
    """Measure the server at URL."""
    unfinished("measure", url=url, pid=pid, as_json=as_json)
