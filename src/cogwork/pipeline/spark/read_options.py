"""What a user asks of the source, checked and picklable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.client.connection.certificates import NONE, Certificates
from cogwork.pipeline.spark.errors import OptionError
from cogwork.pipeline.spark.json_times import zone_of
from cogwork.pipeline.spark.words import (
    CERTIFICATES,
    EARLIEST,
    LATEST,
    TOKEN_FILE,
    certificates_in,
    count_in,
    known_only,
    names_in,
    offsets_in,
    size_in,
    stream_name,
    time_us_in,
    token_in,
    truth_in,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.client.connection.tokens import TokenFile
    from cogwork.pipeline.spark.json_times import Zone

__all__ = ("Place", "ReadOptions", "read_options")

KNOWN = (
    "url",
    "stream",
    "streamPattern",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "timeoutSeconds",
    "pushdown",
    "timeZone",
    *CERTIFICATES,
    TOKEN_FILE,
)

TIMEOUT_S = 120
"""A container may be away for a minute."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where to start or to end, in each stream.

    Attributes:
        offset: For each stream that has none of its own; may be `EARLIEST` or `LATEST`.
        offsets: Of single streams.
        time_us: Instead: the first record of this time or later.
    """

    offset: int
    offsets: tuple[tuple[str, int], ...] = ()
    time_us: int | None = None

    def in_stream(self, stream: str) -> int:
        """Return the offset for a stream, where it is no time."""
        return dict(self.offsets).get(stream, self.offset)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of the source.

    Attributes:
        url: Of a container, or several between commas.
        names: The streams; empty where there is a pattern.
        pattern: Of streams' names, as a shell matches.
        start: Where to start.
        end: Where a batch ends.
        rows_max: Records a trigger reads at most; None for all there are.
        bytes_max: Bytes a trigger reads, about; None for all there are.
        partitions_min: Into how many tasks to cut a read at least.
        fails_on_loss: Whether records that are gone are an error.
        timeout_s: How long to try to go on where nothing comes.
        pushes_down: Whether filters narrow what is read.
        zone: The time zone of timestamps in JSON that name none.
        certificates: For TLS; the files are read wherever a connection is made.
        token: Reads the token to log in by, wherever a connection is made; None without.
    """

    url: str = field(repr=False)  # may have a password in it
    names: tuple[str, ...]
    pattern: str | None
    start: Place
    end: Place
    rows_max: int | None = None
    bytes_max: int | None = None
    partitions_min: int | None = None
    fails_on_loss: bool = True
    timeout_s: int = TIMEOUT_S
    pushes_down: bool = False
    zone: Zone = 0
    certificates: Certificates = NONE
    token: TokenFile | None = None


def read_options(options: Mapping[str, str], *, is_streaming: bool) -> ReadOptions:
    """Check what the user said.

    Args:
        options: As Spark has them; names in any case.
        is_streaming: Whether it is a streaming query that reads.

    Raises:
        OptionError: An option is unknown, missing, or makes no sense.
    """
    known_only(options, KNOWN)
    given = {name: options[name] for name in (*KNOWN, "path") if name in options}
    if "url" not in given:
        raise OptionError("the option url is missing, such as amqp://localhost")
    if is_streaming:
        for name in ("endingOffsets", "endingTimestamp"):
            if name in given:
                raise OptionError(f"{name} is for a batch: a streaming query has no end")
    names, pattern = _streams_in(given)
    start = _place_in(given, "starting", LATEST if is_streaming else EARLIEST)
    end = _place_in(given, "ending", LATEST)
    for which, place in (("startingOffsets", start), ("endingOffsets", end)):
        _check_names(which, place, names)
    return ReadOptions(
        url=given["url"],
        names=names,
        pattern=pattern,
        start=start,
        end=end,
        rows_max=count_in(given, "maxOffsetsPerTrigger"),
        bytes_max=size_in(given, "maxBytesPerTrigger"),
        partitions_min=count_in(given, "minPartitions"),
        fails_on_loss=truth_in(given, "failOnDataLoss", default=True),
        timeout_s=count_in(given, "timeoutSeconds") or TIMEOUT_S,
        pushes_down=truth_in(given, "pushdown", default=False),
        zone=_zone_in(given),
        certificates=certificates_in(given),
        token=token_in(given),
    )


def _zone_in(given: Mapping[str, str]) -> Zone:
    try:
        return zone_of(given.get("timeZone", "UTC"))
    except ValueError:
        raise OptionError(
            f"timeZone: {given['timeZone']!r:.80} is no time zone (expected one such as "
            "Europe/Berlin or +01:00)"
        ) from None


def _streams_in(given: Mapping[str, str]) -> tuple[tuple[str, ...], str | None]:
    pattern = given.get("streamPattern")
    named = given.get("stream", given.get("path"))
    if (named is None) == (pattern is None):
        raise OptionError("one of the options stream and streamPattern is needed")
    if named is None:
        return (), stream_name(pattern or "")
    names = tuple(dict.fromkeys(map(stream_name, names_in(named))))
    if not names:
        raise OptionError("the option stream names no stream")
    return names, None


def _check_names(which: str, place: Place, names: tuple[str, ...]) -> None:
    """Refuse offsets of streams that are not read; what a pattern means is not known yet."""
    others = sorted(name for name, _ in place.offsets if name not in names)
    if names and others:
        raise OptionError(
            f"{which} has an offset for the stream {others[0]}, which is not read: "
            f"{', '.join(names)}"
        )


def _place_in(given: Mapping[str, str], which: str, default: int) -> Place:
    by_offset, by_time = f"{which}Offsets", f"{which}Timestamp"
    if by_offset in given and by_time in given:
        raise OptionError(f"{by_offset} and {by_time} cannot both be given")
    if by_time in given:
        return Place(default, time_us=time_us_in(given, by_time))
    if by_offset not in given:
        return Place(default)
    found = offsets_in(by_offset, given[by_offset])
    if isinstance(found, int):
        return Place(found)
    return Place(default, tuple((stream_name(name), at) for name, at in found.items()))
