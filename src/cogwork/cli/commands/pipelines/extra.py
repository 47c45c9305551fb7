"""What is said where the packages of the pipelines are not installed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("needs_the_extra",)

PACKAGES = frozenset(("matplotlib", "pandas", "pyarrow", "pyiceberg", "pyspark", "sqlalchemy"))


@contextmanager
def needs_the_extra() -> Iterator[None]:
    """Turn the failure to import one of its packages into a line that says what to install."""
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in PACKAGES:
            raise
        raise click.ClickException(
            f"{package} is not installed: pip install 'cogwork[spark]'"
        ) from error
