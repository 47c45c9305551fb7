"""The metrics of a client, by OpenTelemetry's semantic conventions for messaging and RPC."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.metrics import Meter

__all__ = ("Instruments",)

MS_PER_S = 1000.0

DURATION_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""What the conventions recommend for durations of messaging."""


class Instruments:
    """Counts messages, and measures how long things take."""

    def __init__(self, meter: Meter) -> None:
        """Make the instruments.

        Args:
            meter: What makes them.
        """
        self._sent = meter.create_counter(
            "messaging.client.sent.messages", "{message}", "Messages that a client has sent."
        )
        self._consumed = meter.create_counter(
            "messaging.client.consumed.messages",
            "{message}",
            "Messages that were handed to the application.",
        )
        self._sending = meter.create_histogram(
            "messaging.client.operation.duration",
            "s",
            "How long sending takes, until the outcome is known.",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS_S,
        )
        self._processing = meter.create_histogram(
            "messaging.process.duration",
            "s",
            "How long the application works on what it was handed.",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS_S,
        )
        self._calling = meter.create_histogram(
            "rpc.client.duration", "ms", "How long calls take, for the caller."
        )
        self._serving = meter.create_histogram("rpc.server.duration", "ms", "How long methods run.")

    def sent(self, count: int, taken_s: float, attributes: Mapping[str, str | int]) -> None:
        """Messages were sent, or were not: `error.type` says so."""
        self._sent.add(count, attributes)
        self._sending.record(taken_s, attributes)

    def consumed(self, count: int, attributes: Mapping[str, str | int]) -> None:
        """Messages were handed over."""
        self._consumed.add(count, attributes)

    def processed(self, taken_s: float, attributes: Mapping[str, str | int]) -> None:
        """The application is done with what it was handed."""
        self._processing.record(taken_s, attributes)

    def called(self, taken_s: float, attributes: Mapping[str, str | int]) -> None:
        """A call is over."""
        self._calling.record(taken_s * MS_PER_S, attributes)

    def served(self, taken_s: float, attributes: Mapping[str, str | int]) -> None:
        """A method is over."""
        self._serving.record(taken_s * MS_PER_S, attributes)
