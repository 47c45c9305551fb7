"""Messages and outcomes between the typed notation and python-qpid-proton."""

from __future__ import annotations

import proton
from commands import Json, PeerError
from proton import Condition, Delivery, Disposition, Message
from proton_notation import ProtonValue, to_proton

STATES: dict[int | None, str] = {
    Disposition.ACCEPTED: "accepted",
    Disposition.REJECTED: "rejected",
    Disposition.RELEASED: "released",
    Disposition.MODIFIED: "modified",
}
STATE_CODES = {name: code for code, name in STATES.items() if code is not None}


def to_message(notation: Json) -> ProtonValue:
    """Return the proton message for a message in the typed notation."""
    message: ProtonValue = Message()  # proton types its attributes as what they start as
    for field, typed in notation.get("header", {}).items():
        value = to_proton(typed)
        setattr(message, field, value / 1000 if field == "ttl" else value)
    for field, typed in notation.get("properties", {}).items():
        _set_property(message, field, to_proton(typed))
    message.instructions = _mapping(notation.get("delivery_annotations"))
    message.annotations = _mapping(notation.get("message_annotations"))
    message.properties = _mapping(notation.get("application_properties"))
    _set_body(message, notation["body"])
    return message


def _set_property(message: Message, field: str, value: ProtonValue) -> None:
    if field in ("absolute_expiry_time", "creation_time"):
        value /= 1000
    names = {"message_id": "id", "to": "address", "absolute_expiry_time": "expiry_time"}
    setattr(message, names.get(field, field), value)


def _mapping(pairs: Json) -> dict[ProtonValue, ProtonValue] | None:
    return None if pairs is None else {to_proton(key): to_proton(value) for key, value in pairs}


def _set_body(message: Message, body: Json) -> None:
    if "value" in body:
        message.body = to_proton(body["value"])
        return
    kind, sections = next(iter(body.items()))
    if len(sections) != 1:
        raise PeerError("usage", f"proton's Message has one {kind} section, not {len(sections)}")
    message.inferred = True
    message.body = to_proton(["binary" if kind == "data" else "list", sections[0]])


def outcome_notation(delivery: Delivery) -> Json:
    """Return the outcome that the peer gave to a delivery of ours."""
    remote = delivery.remote
    outcome: dict[str, Json] = {"state": STATES.get(remote.type)}
    if outcome["state"] == "rejected" and remote.condition:
        outcome["condition"] = str(remote.condition.name)
        outcome["description"] = remote.condition.description
    if outcome["state"] == "modified":
        outcome["delivery_failed"] = bool(remote.failed)
        outcome["undeliverable_here"] = bool(remote.undeliverable)
        outcome["annotations"] = strings(remote.annotations)
    return outcome


def strings(annotations: ProtonValue) -> dict[str, str]:
    """Return a map of symbols as JSON can hold it."""
    return {str(key): str(value) for key, value in (annotations or {}).items()}


def give_outcome(delivery: Delivery, outcome: Json) -> None:
    """Update a received delivery to the outcome, without settling it."""
    local = delivery.local
    if "condition" in outcome:
        local.condition = Condition(outcome["condition"], outcome.get("description"))
    if outcome["state"] == "modified":
        local.failed = outcome.get("delivery_failed", False)
        local.undeliverable = outcome.get("undeliverable_here", False)
        annotations = outcome.get("annotations", {})
        local.annotations = {proton.symbol(key): value for key, value in annotations.items()}
    delivery.update(STATE_CODES[outcome["state"]])
