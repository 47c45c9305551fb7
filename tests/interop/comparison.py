"""Whether a message arrived as it was sent."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from .notation import data_report

Json: TypeAlias = Any

HEADER_DEFAULTS: dict[str, Json] = {
    "durable": ["boolean", False],
    "priority": ["ubyte", 4],
    "first_acquirer": ["boolean", False],
    "delivery_count": ["uint", 0],
}


def normal(message: Json) -> Json:
    """Return a message without what says nothing: header defaults (§3.2.1), empty sections."""
    plain = json.loads(json.dumps(message))
    header = plain.pop("header", {})
    said = {field: value for field, value in header.items() if HEADER_DEFAULTS.get(field) != value}
    said.pop("first_acquirer", None)  # the broker may set it: it knows who was first (§3.2.1)
    if said:
        plain["header"] = said
    plain["body"] = _reported(plain.get("body", {"value": ["null", None]}))
    return {section: content for section, content in plain.items() if content or section == "body"}


def _reported(body: Json) -> Json:
    if "data" in body and len(body["data"]) == 1 and isinstance(body["data"][0], dict):
        return data_report(body["data"][0]["size_bytes"])
    return body


def differences(sent: Json, received: Json) -> list[str]:
    """Return a line for each section that did not arrive as it was sent."""
    sent, received = normal(sent), normal(received)
    _check_ttl(sent, received)
    return [
        f"{section}: sent {sent.get(section)}, received {received.get(section)}"
        for section in sorted(sent.keys() | received.keys())
        if sent.get(section) != received.get(section)
    ]


def _check_ttl(sent: Json, received: Json) -> None:
    """Let the ttl shrink on its way: a broker takes off the time that it held the message."""
    ttl_ms, left_ms = (it.get("header", {}).get("ttl", ["uint", 0])[1] for it in (sent, received))
    if 0 < left_ms <= ttl_ms:
        received["header"]["ttl"] = ["uint", ttl_ms]
