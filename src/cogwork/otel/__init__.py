"""Traces, metrics and trace ids in logs by OpenTelemetry; needs the extra `otel`.

client = cogwork.connect("amqp://localhost").use(Tracing())
"""

from cogwork.otel.log_records import TraceIds
from cogwork.otel.tracing import Tracing

__all__ = ("TraceIds", "Tracing")
