"""The file in which `bench engines` leaves what it measured, for `engine list` to show."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import click
import msgspec

from cogwork.bench.streams import Figures

__all__ = ("default_path", "load", "prepare", "save")


def default_path() -> Path:
    """Return where figures are kept: `$XDG_STATE_HOME/cogwork/engines.json`."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "cogwork" / "engines.json"


def load(path: Path) -> dict[str, Figures]:
    """Return the figures of each engine; none where nothing was measured.

    Raises:
        click.ClickException: The file is not one of ours.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        listed = msgspec.json.decode(data, type=list[Figures])
    except msgspec.DecodeError as error:
        raise click.ClickException(
            f"{path} is not what `cogwork bench engines` writes: {error}"
        ) from error
    return {f"{each.engine}/{each.servers}": each for each in listed}


def prepare(path: Path) -> None:
    """See that figures can be kept, before any are measured, which takes minutes.

    Raises:
        click.ClickException: The file is not one of ours.
        OSError: It cannot be read, made or written.
    """
    load(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    place = path if path.exists() else path.parent
    if not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))


def save(path: Path, figures: dict[str, Figures]) -> None:
    """Write the figures down, in place of earlier ones of the same engines."""
    kept = {**load(path), **figures}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(list(kept.values()))) + b"\n")
