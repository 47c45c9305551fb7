"""`cogwork pipeline`: Spark jobs over streams, and the pipelines that come with the house."""

from __future__ import annotations

import click

from cogwork.cli.lazy import Entry, LazyGroup

__all__ = ("pipeline",)

COMMANDS = {
    "run": Entry("cogwork.cli.commands.pipelines.run", "Run your own PySpark job."),
    "archive": Entry(
        "cogwork.cli.commands.pipelines.archive",
        "Keep streams as Apache Iceberg tables, each record once.",
    ),
    "replay": Entry(
        "cogwork.cli.commands.pipelines.replay",
        "Send the records of an archive back into the mesh.",
    ),
    "audit": Entry(
        "cogwork.cli.commands.pipelines.audit",
        "Prove that nothing was lost, duplicated or reordered.",
    ),
    "analytics": Entry(
        "cogwork.cli.commands.pipelines.analytics", "Show rates, latencies, traffic and capacity."
    ),
}
"""Each command is the function of its own name in its module."""


@click.group(cls=LazyGroup, entries=COMMANDS)
def pipeline() -> None:
    """Run Spark jobs over streams, and the built-in pipelines.

    These commands need the extra `spark`: pip install 'cogwork[spark]'.
    """
