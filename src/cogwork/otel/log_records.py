"""Trace ids in the records of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import trace

if TYPE_CHECKING:
    import logging

__all__ = ("TraceIds",)


class TraceIds:
    """A filter for handlers: adds `trace_id`, `span_id` and `trace_flags` where a span is current.

    Elsewhere they are empty, so that a format may name them. The names are those of OpenTelemetry's
    "Trace Context in non-OTLP Log Formats".
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, with the ids of the current span."""
        span = trace.get_current_span().get_span_context()
        record.trace_id = trace.format_trace_id(span.trace_id) if span.is_valid else ""
        record.span_id = trace.format_span_id(span.span_id) if span.is_valid else ""
        record.trace_flags = f"{span.trace_flags:02x}" if span.is_valid else ""
        return True
