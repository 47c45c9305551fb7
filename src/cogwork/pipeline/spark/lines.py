"""The one line in what Spark says of an error.

Theory of operation. An error of the source or the sink is raised in a worker, or in a process
beside the driver, and reaches the user as the text of a traceback within that of the JVM. The line
of ours in there is what went wrong.
"""

from __future__ import annotations

import re

__all__ = ("line_of_spark",)

OURS = re.compile(r"^\s*(?:\S+: )?cogwork\.[\w.]+: (.+)$", re.MULTILINE)

PYTHON = re.compile(r"^\s*([A-Z]\w*(?:Error|Exception|Warning|Interrupt)): (.+)$", re.MULTILINE)

UNKNOWN_SOURCE = "Failed to find the data source: cogwork"

WITHOUT_US = (
    "Spark does not find the format cogwork: the Python of its driver and its workers, at the "
    "server where it is remote, needs pip install 'cogwork[spark]'; PYSPARK_PYTHON says which it is"
)


def line_of_spark(error: BaseException) -> str | None:
    """Return what a worker or the driver's helper raised; None where it was neither."""
    text = str(error)
    if UNKNOWN_SOURCE in text:
        return WITHOUT_US
    if found := OURS.findall(text):
        return str(found[-1]).strip()
    if found := PYTHON.findall(text):
        return f"{found[-1][0]}: {found[-1][1]}".strip()
    return None
