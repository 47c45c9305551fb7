"""What librdkafka complains about, as errors of logs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from cogwork.engines.shared.server import Gone, ServerDown, ServerRefused, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("REQUEST_TIMEOUT_S", "passing", "translated")

REQUEST_TIMEOUT_S = 3.0

REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_CONFIG,
    KafkaError.POLICY_VIOLATION,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError._AUTHENTICATION,
    KafkaError._INVALID_ARG,
)
ABSENT = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)
UNSENT = (
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError._QUEUE_FULL,
)


@contextmanager
def passing(code: int) -> Iterator[None]:
    """Let one of Kafka's errors pass."""
    try:
        yield
    except KafkaException as error:
        if error.args[0].code() != code:
            raise


@contextmanager
def translated() -> Iterator[None]:
    """Turn the library's errors into those of logs."""
    try:
        yield
    except BufferError as error:
        raise ServerDown(f"Kafka: {error}", may_have_happened=False) from error
    except KafkaException as error:
        found = error.args[0]
        code = found.code() if isinstance(found, KafkaError) else None
        text = f"Kafka: {found.str() if isinstance(found, KafkaError) else found}"
        if code in ABSENT:
            raise Gone from error
        if code == KafkaError.MSG_SIZE_TOO_LARGE:
            raise TooLarge(text) from error
        if code in REFUSED:
            raise ServerRefused(text) from error
        raise ServerDown(text, may_have_happened=code not in UNSENT) from error
