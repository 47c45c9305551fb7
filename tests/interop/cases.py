"""What is sent: a case for every AMQP type, section and outcome, and what libraries cannot do."""

from __future__ import annotations

from dataclasses import dataclass

from .notation import (
    NULL,
    Json,
    Typed,
    array,
    binary,
    described,
    double,
    float32,
    integer,
    mapping,
    sequence,
    string,
    symbol,
)

UUID_TEXT = "4f6b9dfc-7a2d-4b1e-9d52-0a8f3c2b1e77"
MILLISECONDS = 1_700_000_000_250

SIMPLE_VALUES: dict[str, Typed] = {
    "null": NULL,
    "boolean-true": ["boolean", True],
    "boolean-false": ["boolean", False],
    "ubyte": integer("ubyte", 255),
    "ushort": integer("ushort", 65_535),
    "uint-zero": integer("uint", 0),
    "uint-small": integer("uint", 255),
    "uint": integer("uint", 4_294_967_295),
    "ulong-zero": integer("ulong", 0),
    "ulong-small": integer("ulong", 255),
    "ulong": integer("ulong", 18_446_744_073_709_551_615),
    "byte": integer("byte", -128),
    "short": integer("short", -32_768),
    "int-small": integer("int", -1),
    "int": integer("int", -2_147_483_648),
    "long-small": integer("long", -1),
    "long": integer("long", -9_223_372_036_854_775_808),
    "float": float32(-1.5),
    "float-infinity": float32(float("inf")),
    "double": double(0.1),
    "double-negative-zero": double(-0.0),
    "double-nan": double(float("nan")),
    "decimal32": ["decimal32", "22500001"],
    "decimal64": ["decimal64", "2238000000000001"],
    "decimal128": ["decimal128", "2208000000000000000000000000002a"],
    "char-ascii": ["char", 0x41],
    "char-astral": ["char", 0x1F980],
    "timestamp": integer("timestamp", MILLISECONDS),
    "timestamp-before-1970": integer("timestamp", -86_400_000),
    "uuid": ["uuid", UUID_TEXT],
    "binary-empty": binary(b""),
    "binary": binary(bytes(range(256))),
    "string-empty": string(""),
    "string-unicode": string("Zahnräder ⚙ 歯車"),
    "string-long": string("cog" * 100),
    "symbol": symbol("x-opt:cog"),
    "symbol-long": symbol("s" * 300),
}
"""Every primitive type, with the values at which encodings change; application-properties too."""

COMPOUND_VALUES: dict[str, Typed] = {
    "list-empty": sequence(),
    "list": sequence(integer("int", 1), string("two"), NULL, sequence(integer("ubyte", 3))),
    "map-empty": mapping(),
    "map": mapping(
        (string("one"), integer("ushort", 1)),
        (symbol("two"), sequence(["boolean", True])),
        (integer("ulong", 3), mapping((string("deep"), double(3.0)))),
    ),
    "array-int": array("int", 1, -2, 2_147_483_647),
    "array-symbol": array("symbol", "a", "bc"),
    "array-boolean": array("boolean", True, False),
    "array-ulong": array("ulong", "1", "18446744073709551615"),
    "array-binary": array("binary", "00ff", ""),
    "array-described": array(["described", symbol("cogwork:tooth"), "uint"], 1, 2),
    "described-in-list": sequence(described(symbol("cogwork:wheel"), integer("uint", 12))),
    "described-by-number": sequence(described(integer("ulong", 0x1234), sequence(string("spoke")))),
    "described": described(
        symbol("cogwork:wheel"), mapping((string("teeth"), integer("uint", 12)))
    ),
}
"""Compound and described values: bodies and annotations."""

BODIES: dict[str, Json] = {
    "data": {"data": ["00010203"]},
    "data-empty": {"data": [""]},
    "data-sections": {"data": ["0001", "", "0203"]},
    "sequence": {"sequence": [[integer("int", 1), string("two")]]},
    "sequence-empty": {"sequence": [[]]},
    "sequence-sections": {"sequence": [[integer("int", 1)], [string("two")]]},
}

PROPERTIES: dict[str, dict[str, Typed]] = {
    "all-fields": {
        "message_id": string("message-1"),
        "user_id": binary(b"interop"),
        "to": string("somewhere"),
        "subject": string("a.subject"),
        "reply_to": string("elsewhere"),
        "correlation_id": string("correlation-1"),
        "content_type": symbol("text/plain"),
        "content_encoding": symbol("identity"),
        "absolute_expiry_time": integer("timestamp", 4_102_444_800_000),
        "creation_time": integer("timestamp", MILLISECONDS),
        "group_id": string("group-1"),
        "group_sequence": integer("uint", 4_294_967_295),
        "reply_to_group_id": string("group-2"),
    },
    "id-ulong": {"message_id": integer("ulong", 2**63), "correlation_id": integer("ulong", 7)},
    "id-uuid": {"message_id": ["uuid", UUID_TEXT], "correlation_id": ["uuid", UUID_TEXT]},
    "id-binary": {"message_id": binary(b"\x00\x01"), "correlation_id": binary(b"\xff" * 16)},
}

HEADERS: dict[str, dict[str, Typed]] = {
    "durable": {"durable": ["boolean", True]},
    "priority": {"priority": integer("ubyte", 9)},
    "ttl": {"ttl": integer("uint", 3_600_000)},
}

OUTCOMES: dict[str, Json] = {
    "accepted": {"state": "accepted"},
    "rejected": {
        "state": "rejected",
        "condition": "cogwork:worn-out",
        "description": "three teeth are missing",
    },
    "released": {"state": "released"},
    "modified-failed": {
        "state": "modified",
        "delivery_failed": True,
        "undeliverable_here": False,
        "annotations": {"x-opt-why": "slipped"},
    },
    "modified-elsewhere": {
        "state": "modified",
        "delivery_failed": False,
        "undeliverable_here": True,
        "annotations": {},
    },
}

SIZES_BYTES = (0, 1, 1_024, 65_536, 1_000_000, 10_000_000)


@dataclass(frozen=True)
class Limit:
    """What a client library cannot do.

    Args:
        peer: The peer on that library.
        role: `send` or `receive`.
        case: The case, or its prefix with `*`.
        reason: Why, in words a reader can check in the library.
    """

    peer: str
    role: str
    case: str
    reason: str

    def covers(self, case: str) -> bool:
        """Return whether the limit is about this case."""
        return case.startswith(self.case[:-1]) if self.case.endswith("*") else case == self.case


LIMITS = (
    Limit("proton", "send", "sections/data-sections", "its Message holds one section"),
    Limit("proton", "send", "sections/sequence-sections", "its Message holds one section"),
    Limit("rhea", "send", "body/described", "the section's descriptor replaces that of its value"),
    Limit("rhea", "receive", "body/described", "its Reader keeps the outermost descriptor only"),
)


def limit(peer: str, role: str, case: str) -> Limit | None:
    """Return what keeps a peer from this case, if anything does."""
    return next(
        (it for it in LIMITS if (it.peer, it.role) == (peer, role) and it.covers(case)), None
    )


def possible(cases: dict[str, Json], sender: str, receiver: str) -> dict[str, Json]:
    """Return the cases that both libraries can do."""
    return {
        name: case
        for name, case in cases.items()
        if not limit(sender, "send", name) and not limit(receiver, "receive", name)
    }


def type_messages() -> dict[str, Json]:
    """Return messages with each value as body, as annotation and, where allowed, as property."""
    messages: dict[str, Json] = {}
    for name, value in {**SIMPLE_VALUES, **COMPOUND_VALUES}.items():
        messages[f"body/{name}"] = {"body": {"value": value}}
        messages[f"annotation/{name}"] = _annotated(value)
    for name, value in SIMPLE_VALUES.items():
        messages[f"property/{name}"] = {
            "body": {"value": NULL},
            "application_properties": [[string("value"), value], [string("other"), string("kept")]],
        }
    return messages


def _annotated(value: Typed) -> Json:
    return {"body": {"value": NULL}, "message_annotations": [[symbol("x-opt-value"), value]]}


def section_messages() -> dict[str, Json]:
    """Return a message for every kind of body, and for the fields of properties and header."""
    messages: dict[str, Json] = {
        f"sections/{name}": {"body": body} for name, body in BODIES.items()
    }
    for name, fields in PROPERTIES.items():
        messages[f"properties/{name}"] = {"body": {"value": string(name)}, "properties": fields}
    for name, fields in HEADERS.items():
        messages[f"header/{name}"] = {"body": {"value": string(name)}, "header": fields}
    return messages
