"""What streams hold, asked by the driver, and whether what is wanted is still there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cogwork.pipeline.arrow import ArrowClient, Bounds, UnknownStream
from cogwork.pipeline.spark.errors import DataLoss, SourceError
from cogwork.pipeline.spark.ranges import Range
from cogwork.pipeline.spark.words import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.pipeline.spark.read_options import Place, ReadOptions

__all__ = ("StreamBounds", "loss_of")

FRESH_S = 0.1
"""An idle query asks up to 60 times a second."""

FIRST_TIMEOUT_S = 15
"""How long to try before anything has been heard: a URL may simply be wrong."""

SAMPLE_ROWS = 100

OF_THE_MESH = "$"
"""What the names of the mesh's own streams begin with: only a pattern that does means them."""


class StreamBounds:
    """Asks for the bounds of the streams that the options name. Used by one thread."""

    def __init__(
        self,
        options: ReadOptions,
        monotonic_s: Callable[[], float] = time.monotonic,
        fresh_s: float = FRESH_S,
    ) -> None:
        """Ask nothing yet.

        Args:
            options: The source's.
            monotonic_s: A clock.
            fresh_s: How long an answer is good for.
        """
        self._options = options
        self._monotonic_s = monotonic_s
        self._fresh_s = fresh_s
        self._timeout_s = min(FIRST_TIMEOUT_S, options.timeout_s)
        self._client = self._made_client()
        self._found: dict[str, Bounds] = {}
        self._found_at_s: float | None = None

    def close(self) -> None:
        """Let the connection go."""
        self._client.close()

    def of_all(self) -> dict[str, Bounds]:
        """Return the bounds of every stream that is read, not older than a moment.

        Raises:
            SourceError: There is no such stream.
        """
        if self._found_at_s is None or self._monotonic_s() - self._found_at_s > self._fresh_s:
            self._found = self._ask()
            self._found_at_s = self._monotonic_s()  # asking may take longer than it is fresh
            self._be_patient()
        return self._found

    def _be_patient(self) -> None:
        """Give a container that was there the time to come back."""
        if self._timeout_s < self._options.timeout_s:
            self._client.close()
            self._timeout_s = self._options.timeout_s
            self._client = self._made_client()

    def _made_client(self) -> ArrowClient:
        tls = self._options.certificates.context()
        return ArrowClient(
            self._options.url, timeout_s=self._timeout_s, tls=tls, token=self._options.token
        )

    def _ask(self) -> dict[str, Bounds]:
        pattern = self._options.pattern
        if pattern is None:
            return {name: self._of_named(name) for name in self._options.names}
        found = {}
        for name in self._client.streams(pattern):
            if name.startswith(OF_THE_MESH) and not pattern.startswith(OF_THE_MESH):
                continue
            try:
                found[name] = self._client.bounds(name)
            except UnknownStream:  # deleted meanwhile
                continue
        return found

    def _of_named(self, name: str) -> Bounds:
        try:
            return self._client.bounds(name)
        except UnknownStream:
            raise SourceError(f"there is no stream {name}") from None

    # -- places

    def ranges(self) -> list[Range]:
        """Return what a batch reads, within what there is.

        Raises:
            DataLoss: Some of it is not there.
            SourceError: There is no such stream.
        """
        bounds = self.of_all()
        starts = self.places(self._options.start, bounds)
        ends = self.places(self._options.end, bounds)
        return [self.kept(Range(name, starts[name], ends[name]), bounds[name]) for name in bounds]

    def places(self, place: Place, bounds: Mapping[str, Bounds] | None = None) -> dict[str, int]:
        """Return the offset of a place in every stream.

        Args:
            place: Which one.
            bounds: What the streams hold; None asks. Whatever goes with these offsets has to be of
                the same answer: streams grow from one to the next.
        """
        known = self.of_all() if bounds is None else bounds
        return {name: self._offset_of(place, name, found) for name, found in known.items()}

    def _offset_of(self, place: Place, name: str, found: Bounds) -> int:
        if place.time_us is not None:
            return min(self._client.offset_at(name, place.time_us), found.next)
        offset = place.in_stream(name)
        if offset == EARLIEST:
            return found.first
        return found.next if offset == LATEST else offset

    def kept(self, wanted: Range, found: Bounds) -> Range:
        """Return what is there of a range.

        Raises:
            DataLoss: Some is not, and that is an error.
        """
        if wanted.end < wanted.start <= found.next:
            raise SourceError(
                f"stream {wanted.stream}: it is to be read from {wanted.start} to before "
                f"{wanted.end}, which is nothing"
            )
        if self._options.fails_on_loss and (loss := loss_of(wanted, found)) is not None:
            raise loss
        start = min(max(wanted.start, found.first), found.next)
        return Range(wanted.stream, start, max(start, min(wanted.end, found.next)))

    def row_size_bytes(self, stream: str, start: int, end: int) -> float:
        """Return about how many bytes a record has, by the first ones of a range."""
        until = min(end, start + SAMPLE_ROWS)
        batches = list(self._client.read(stream, start, until))
        size_bytes = sum(int(batch.nbytes) for batch in batches)
        return max(1.0, size_bytes / max(1, until - start))

    def starts_of(self, start: Mapping[str, int], bounds: Mapping[str, Bounds]) -> dict[str, int]:
        """Return where to go on in every stream; one that is new is read from its beginning.

        Args:
            start: Where the last batch has ended, by stream.
            bounds: What the streams hold.

        Raises:
            SourceError: It is another query's.
            DataLoss: A stream is gone, has lost what would be next, or is another one by now.
        """
        fails = self._options.fails_on_loss
        named = self._options.names
        if named and (others := sorted(start.keys() - set(named))):
            raise SourceError(
                f"the checkpoint is another query's: it has a place in the stream {others[0]}, and "
                f"this one reads {', '.join(named)}"
            )
        if fails and (gone := sorted(start.keys() - bounds.keys())):
            raise DataLoss(f"there is no stream {gone[0]} any more (failOnDataLoss)")
        going_on = {}
        for name, found in bounds.items():
            at = start.get(name, found.first)
            if fails and (loss := loss_of(Range(name, at, at), found)) is not None:
                raise loss
            going_on[name] = at if found.first <= at <= found.next else found.first
        return going_on


def loss_of(wanted: Range, found: Bounds) -> DataLoss | None:
    """Return the error that says what of a range is not there; None where all is."""
    if wanted.start < found.first:
        return DataLoss(
            f"stream {wanted.stream}: the records from {wanted.start} to before {found.first} have "
            "been given up (failOnDataLoss=false goes on without them)"
        )
    if max(wanted.start, wanted.end) > found.next:
        return DataLoss(
            f"stream {wanted.stream}: offset {max(wanted.start, wanted.end)} is beyond its end, "
            f"{found.next} (failOnDataLoss=false reads what there is)"
        )
    return None
