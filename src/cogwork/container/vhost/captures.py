"""Streams that keep what is published to topics.

A stream that one container has gets its copies like a subscriber, also of what is published
elsewhere. One that the whole cluster has gets them where they are published, and from nowhere else:
so each message is appended once, whichever container dies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.plugin.capabilities import Bindable, Capturing
from cogwork.plugin.node import Refused
from cogwork.plugin.node_kinds import provides
from cogwork.router.topics import MAX_PATTERN_WORDS

if TYPE_CHECKING:
    from cogwork.container.vhost.virtual_host import VirtualHost

__all__ = ("begin_capture", "end_capture")


def begin_capture(vhost: VirtualHost, node: Capturing) -> None:
    """Have a stream get a copy of what matches the patterns of its declaration.

    Raises:
        Refused: A pattern is none of a topic, or has too many words.
    """
    # All of them before any is bound: one that is none leaves nothing behind.
    for topic, subject in [_topic_of(vhost, pattern) for pattern in node.captured]:
        if node.is_everywhere:
            topic.bind_far(subject, node.capture)
        else:
            topic.add_outlet(node.capture)
            topic.bind(node.capture, subject)


def end_capture(vhost: VirtualHost, node: Capturing) -> None:
    """End that."""
    for pattern in node.captured:
        topic, subject = _topic_of(vhost, pattern)
        if node.is_everywhere:
            topic.unbind_far(subject, node.capture)
        else:
            topic.unbind(node.capture, subject)
            topic.remove_outlet(node.capture)


def _topic_of(vhost: VirtualHost, pattern: str) -> tuple[Bindable, bytes]:
    address, rule = vhost.rule_of(pattern)
    topic = vhost.nodes.of(rule, address) if provides(rule.kind, Bindable) else None
    subject = topic.subject_of(address) if isinstance(topic, Bindable) else b""
    if not isinstance(topic, Bindable) or not subject:
        raise Refused(
            f"capture {pattern!r:.200}: a topic is expected, such as topic/flights.#",
            Condition.INVALID_FIELD,
        )
    if (count := subject.count(b".") + 1) > MAX_PATTERN_WORDS:
        text = f"capture {pattern!r:.80}: {count} words; at most {MAX_PATTERN_WORDS} are allowed"
        raise Refused(text, Condition.INVALID_FIELD)
    return topic, subject
