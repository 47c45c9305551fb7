"""The names of the virtual hosts that the cluster has declared, kept in the data directory.

Queues on disk are opened before it is known what the cluster has declared: those in a virtual host
that it declared earlier need that one by then.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cogwork.log.directory import opened_privately

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("KeptVhosts",)

FILE_NAME = "vhosts.json"

log = logging.getLogger("cogwork")


class KeptVhosts:
    """Owned by who follows the cluster.

    Attributes:
        names: As they are kept.
    """

    def __init__(self, data_dir: str | None) -> None:
        """Read the names.

        Args:
            data_dir: Where they are; None keeps none.
        """
        self._path = None if data_dir is None else Path(data_dir) / FILE_NAME
        self.names: list[str] = [] if self._path is None else _read(self._path)

    def keep(self, names: Sequence[str]) -> None:
        """Keep other names from now on; a disk that fails is told, and nothing more."""
        if list(names) == self.names:
            return
        self.names = list(names)
        if self._path is None:
            return
        fresh = self._path.with_suffix(".new")
        try:
            with open(fresh, "wb", opener=opened_privately) as file:
                file.write(msgspec.json.encode(self.names))
            fresh.replace(self._path)
        except OSError as error:
            log.error("cannot write %s: %s", self._path, error.strerror)


def _read(path: Path) -> list[str]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[str])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        log.error(
            "cannot read %s: %s; queues on disk in virtual hosts of the cluster are opened after "
            "the next start",
            path,
            error,
        )
        return []
