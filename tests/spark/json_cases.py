"""Random types and random JSON for them, most of which fits; written as people and programs do."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

__all__ = ("random_body", "random_type")

CLOCK_ALONE = re.compile(r"""["']\s*T?\d{1,2}:""")
"""A time without a date: Spark puts it on the day of the query, and we take it for none."""

ESCAPED = r"\ud83d\ude00"
HALF = re.compile("d83|e00|ud8|ude")
"""What is left of it where a character of it is lost."""

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")

NAMES = ("a", "b", "ü", "a-b", "A", "x y")
TEXTS = (
    "",
    "x",
    "ä€😀",
    "1",
    "true",
    'a"b\\c/d',
    "\b\f\n\r\t",
    "\u0001\u001f\u007f",
    "NaN",
    "null",
)
WHOLE = (
    *("0", "-0", "1", "-1", "7", "100", "-128", "32767", "-32768", "32768"),
    *("2147483647", "-2147483648", "2147483648", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "-9223372036854775809", "16777217", "9007199254740993"),
    "123456789012345678901234567890",
)
FRACTIONS = (
    *("1.5", "-1.5", "1.0", "0.1", "1e2", "1E+2", "1e-2", "1.50", "-0.0", "0.0", "1.555", "-1.545"),
    *(
        "123456.789",
        "1e300",
        "1e-300",
        "0.001",
        "0.00099",
        "9999999.5",
        "12345678.5",
        "1e7",
        "1e-7",
    ),
    *("99.995", "999.994", "3.4e38", "1e16", "2.5e-5"),
)
DATES = (
    *("2020-02-29", "2021-02-29", "2020-2-9", "2020-11", "2020", "1969-12-31", "0001-01-01"),
    *("9999-12-31", " 2020-01-02 ", "2020-01-02T10:00", "2020-01-02 ", "2020-13-01", "2020-00-01"),
    *("2020-01-02x", "20200102", "20-01-02", "+2020-01-02", "1582-10-10", "123", "-5", "+7", "12."),
    *("2020-01-02 GMT", "2020-01-02GMT", "1900-02-29", "2000-02-29", "2020/01/02", "T"),
    *("12345-01-01", "-0044-03-15", "0000-02-29", "123456789", "-12345678", "-99999999", "9999999"),
)
CLOCKS = (
    *("T00:00:00", " 23:59:59", "T24:00:00", "T10:60:00", "T1:2:3", "T10:20", " 10", "T", "T10:"),
    *("T10:20:30.1", "T10:20:30.123456", "T10:20:30.123456789", "T10:20:30.", " 10:20:60", "x"),
)
ZONES = (
    *(
        "",
        "Z",
        " Z",
        "+01:00",
        "-0330",
        "+1",
        "+01",
        "+1:2",
        "+18:00",
        "+18:01",
        "-01:02:03",
        "UTC",
    ),
    *(" UTC+3", "GMT-1", "UT+01:30", " Europe/Berlin", "America/New_York", "EST", " PST"),
    *("z", "Mars/Olympus", "+", ".5", "+01:60", "europe/berlin", "+0130", "GMT0"),
)
REGIONAL = ("2024-03-31T02:30:00", "2024-10-27T02:30:00", "1890-01-01 00:00", "2500-07-01 00:00:00")
OCTETS = ("", "AA==", "AAA=", "AAAA", "AQIDBA==", "AQI", "A", "A QI=", "-_8=", "AA==AA==", " AQI= ")


def random_type(random: Random, depth: int = 2) -> str:
    """Return a type as Spark's DDL has it: a struct, a list or a map where it is the outermost."""
    outer = random.choice(["struct", "struct", "struct", "array", "map"])
    if outer == "array":
        return f"array<{_inner(random, depth)}>"
    if outer == "map":
        return f"map<string,{_inner(random, depth)}>"
    names = random.sample(NAMES, random.randint(1, 4))
    return f"struct<{','.join(f'`{name}`: {_inner(random, depth)}' for name in names)}>"


def _inner(random: Random, depth: int) -> str:
    if depth and random.random() < 0.3:
        return random_type(random, depth - 1)
    return random.choice(list(SINGLE))


def random_body(random: Random, kind: object) -> str:
    """Return a text that may be JSON, and may fit a type.

    Args:
        random: Chooses.
        kind: As PySpark has it, in the form of `jsonValue`.
    """
    while True:
        text = _value(random, kind)
        if random.random() < 0.1 and text:  # some of it is lost
            at = random.randrange(len(text))
            text = text[:at] + text[at + 1 :]
        if not _is_changed_by_spark(text, json.dumps(kind)):
            return text


def _is_changed_by_spark(text: str, kind: str) -> bool:
    """Return whether Spark may take something for another one; these are a test of their own."""
    has_clock = '"timestamp"' in kind and CLOCK_ALONE.search(text) is not None
    if has_clock or HALF.search(text.replace(ESCAPED, "")):
        return True
    for match in NUMBER.finditer(text):
        if '"byte"' in kind and 128 <= abs(float(match[0])) <= 255:
            return True
        if '"float"' in kind and abs(float(match[0])) > 3.4e38:
            return True
        if '"timestamp"' in kind and abs(float(match[0])) > 9.2e12:
            return True
        if '"string"' in kind and "." in match[0] and len(match[0]) > 12:
            return True  # Java 17 writes some floats with digits that they do not need
    return False


def _value(random: Random, kind: object) -> str:
    chance = random.random()
    if chance < 0.04:
        return "null"
    if chance < 0.08:
        kind = random.choice(list(SINGLE))
    if chance > 0.97:
        kind = {"type": "array", "elementType": "string"}
    if isinstance(kind, str):
        name = kind.partition("(")[0]
        return SINGLE[BY_JSON.get(name, name)](random)
    assert isinstance(kind, dict)
    if kind["type"] == "array":
        items = [_value(random, kind["elementType"]) for _ in range(random.randint(0, 3))]
        return _spaced(random, "[", items, "]")
    if kind["type"] == "map":
        names = random.sample(NAMES, random.randint(0, 3))
        return _object(random, [(name, _value(random, kind["valueType"])) for name in names])
    fields = [(each["name"], _value(random, each["type"])) for each in kind["fields"]]
    fields = [each for each in fields if random.random() < 0.85]
    if random.random() < 0.3:
        fields.append(("other", _value(random, {"type": "array", "elementType": "double"})))
    if fields and random.random() < 0.1:
        fields.append(random.choice(fields))
    random.shuffle(fields)
    return _object(random, fields)


def _object(random: Random, fields: list[tuple[str, str]]) -> str:
    texts = [f"{_quoted(random, name)}{_blank(random)}:{value}" for name, value in fields]
    return _spaced(random, "{", texts, "}")


def _spaced(random: Random, begin: str, items: list[str], end: str) -> str:
    inner = ",".join(f"{_blank(random)}{item}{_blank(random)}" for item in items)
    return f"{_blank(random)}{begin}{inner}{_blank(random)}{end}"


def _blank(random: Random) -> str:
    return random.choice(["", "", "", "", " ", "\n\t", "\r"])


def _quoted(random: Random, text: str) -> str:
    chance = random.random()
    if chance < 0.05 and "'" not in text:
        return "'" + json.dumps(text)[1:-1].replace('\\"', '"') + "'"
    return json.dumps(text, ensure_ascii=chance < 0.5)


def _one_of(*texts: str) -> Callable[[Random], str]:
    return lambda random: random.choice(texts)


def _string_of(*texts: str) -> Callable[[Random], str]:
    return lambda random: _quoted(random, random.choice(texts))


def _whole(random: Random) -> str:
    chance = random.random()
    if chance < 0.1:
        return random.choice(FRACTIONS)
    if chance < 0.4:
        return random.choice(WHOLE)
    return str(random.randint(-100, 100) if chance < 0.8 else random.randint(-(1 << 40), 1 << 40))


def _number(random: Random) -> str:
    chance = random.random()
    if chance < 0.1:
        return random.choice(["NaN", "Infinity", "+INF", "-Infinity", '"NaN"', '"-INF"', '"INF"'])
    if chance < 0.5:
        return random.choice(FRACTIONS + WHOLE)
    return repr(random.uniform(-1000, 1000))


def _decimal(random: Random) -> str:
    found = random.choice(FRACTIONS + WHOLE)
    return f'"{found}"' if random.random() < 0.2 else found


def _moment(random: Random) -> str:
    chance = random.random()
    if chance < 0.1:
        return str(random.randint(-(10**10), 10**10))
    if chance < 0.3:
        return _quoted(random, random.choice(REGIONAL) + random.choice(ZONES))
    date = random.choice(DATES)
    clock = random.choice(CLOCKS) if chance < 0.9 else ""
    return _quoted(random, date + clock + (random.choice(ZONES) if ":" in clock else ""))


def _text(random: Random) -> str:
    chance = random.random()
    if chance < 0.1:
        return random.choice(FRACTIONS + WHOLE)
    if chance < 0.2:
        return _value(random, {"type": "array", "elementType": "string"})
    return _string_of(*TEXTS)(random)


SINGLE: dict[str, Callable[[Random], str]] = {
    "boolean": _one_of("true", "false", "true", "false", "1", '"true"', "True"),
    "tinyint": _whole,
    "smallint": _whole,
    "int": _whole,
    "bigint": _whole,
    "float": _number,
    "double": _number,
    "decimal(5,2)": _decimal,
    "decimal(38,10)": _decimal,
    "string": _text,
    "binary": _string_of(*OCTETS),
    "date": _string_of(*DATES),
    "timestamp": _moment,
    "timestamp_ntz": _moment,
}

BY_JSON = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "decimal": "decimal(5,2)",
}
