"""Where pages and plots are to be written, looked at before what is on them takes minutes."""

from __future__ import annotations

import os
from pathlib import Path

import click

__all__ = ("PageFile", "PlotFolder")


class PageFile(click.Path):
    """A file that can be written: no folder, and in one that is there."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False, writable=True)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Read the path."""
        file = Path(os.fsdecode(super().convert(value, param, ctx)))
        folder = file.parent
        if not folder.is_dir():
            self.fail(f"there is no directory {str(folder)!r}", param, ctx)
        if not file.exists() and not os.access(folder, os.W_OK):
            self.fail(f"cannot write to {str(folder)!r}", param, ctx)
        return file


class PlotFolder(click.Path):
    """A folder that can be written in, or be made."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, file_okay=False)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Read the path."""
        folder = Path(os.fsdecode(super().convert(value, param, ctx)))
        there = folder
        while not os.path.lexists(there):
            there = there.parent
        if not there.is_dir():
            self.fail(f"{str(there)!r} is not a directory", param, ctx)
        if not os.access(there, os.W_OK | os.X_OK):
            self.fail(f"cannot write to {str(there)!r}", param, ctx)
        return folder
