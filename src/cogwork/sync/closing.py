"""What is used in `with`, and closed by leaving it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

__all__ = ("Closing",)


class Closing(ABC):
    """Something to be closed; leaving a `with` closes it, whatever the reason is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Let go of what it has."""
