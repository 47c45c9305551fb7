"""Names of exchanges: those that are always there, and which can be had."""

from __future__ import annotations

from typing import Final

__all__ = ("PREDECLARED", "RESERVED", "problem_of_name")

PREDECLARED: Final = {
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.headers": "headers",
    "amq.match": "headers",
    "amq.topic": "topic",
}
"""Exchanges that are there from the start, with their types (AMQP 0-9-1 §3.1.3)."""

RESERVED: Final = "amq."
"""What only names of such exchanges begin with."""

NAME_OCTETS_MAX: Final = 255
"""What a short string has room for (AMQP 0-9-1 §4.2.5.3)."""


def problem_of_name(name: str) -> str:
    """Say what a name of a new exchange has to be; empty for a good one."""
    if name.startswith(RESERVED):
        return "a name that does not begin with amq."
    if not name or not name.isprintable() or len(name.encode(errors="replace")) > NAME_OCTETS_MAX:
        return f"1 to {NAME_OCTETS_MAX} octets of printable characters"
    return ""
