"""What a container needs to know of the cluster before it does, in its data directory.

Queues on disk are opened before it is known what the cluster has declared: those in a virtual host
that it declared earlier need that one by then, and their policies hold from the start.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from cogwork.log.directory import opened_privately

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("KeptDeclarations",)

T = TypeVar("T")

log = logging.getLogger("cogwork")


class KeptDeclarations(Generic[T]):
    """Those of one kind; owned by who follows the cluster.

    Attributes:
        values: As they are kept.
    """

    def __init__(self, data_dir: str | None, file_name: str, value_type: type[T]) -> None:
        """Read them.

        Args:
            data_dir: Where they are; None keeps none.
            file_name: Of the file there.
            value_type: What each of them is.
        """
        self._path = None if data_dir is None else Path(data_dir) / file_name
        self.values: list[T] = [] if self._path is None else _read(self._path, value_type)

    def keep(self, values: Sequence[T]) -> None:
        """Keep others from now on; a disk that fails is told, and nothing more."""
        if list(values) == self.values:
            return
        self.values = list(values)
        if self._path is None:
            return
        fresh = self._path.with_suffix(".new")
        try:
            with open(fresh, "wb", opener=opened_privately) as file:
                file.write(msgspec.json.encode(self.values))
            fresh.replace(self._path)
        except OSError as error:
            log.error("cannot write %s: %s", self._path, error.strerror)


def _read(path: Path, value_type: type[T]) -> list[T]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[value_type])  # type: ignore[valid-type]  # given at run time
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        log.error(
            "cannot read %s: %s; what the cluster has declared of that holds after the next start",
            path,
            error,
        )
        return []
