"""Selectors: what they take, and what a broken one is told."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from cogwork.router.selectors import (
    MAX_NESTING,
    MAX_SELECTOR_LENGTH,
    STEPS_MAX,
    SelectorCostError,
    SelectorSyntaxError,
    compile_selector,
    section_lookup,
)


class Symbol(str):
    __slots__ = ()


class UInt(int):
    __slots__ = ()


FLIGHT = {
    "origin": "JFK",
    "dest": "LAX",
    "delay": 15,
    "distance": 2475.5,
    "late": True,
    "early": False,
    "carrier": Symbol("AA"),
    "count": UInt(3),
    "price": Decimal("9.5"),
    "id": UUID(int=7),
    "bytes": b"AA",
    "when": datetime(2013, 1, 1, tzinfo=UTC),
    "percent": "10%",
    "quote": "it's",
    "x-opt-key": "hyphens",
    "a.b": 1,
    "größe": 3,
    "lines": "one\ntwo",
}


def holds(text: str) -> bool:
    return compile_selector(text).matches(FLIGHT.get)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "origin = 'JFK'",
        "origin <> 'LGA' AND dest = 'LAX'",
        "origin = 'LGA' OR dest = 'LAX'",
        "NOT origin = 'LGA'",
        "not (origin = 'LGA' or origin = 'EWR')",
        "late",
        "late = TRUE and early = false",
        "NOT early",
        "delay > 14 AND delay >= 15 AND delay < 16 AND delay <= 15",
        "delay = 15.0",
        "distance > 2475 AND distance < 2.476E3",
        "delay + 5 * 2 = 25",
        "(delay + 5) * 2 = 40",
        "delay / 2 = 7",
        "-delay / 2 = -7",
        "delay / 2.0 = 7.5",
        "10 - 3 - 2 = 5",
        "- - delay = +15",
        "delay = 0xF AND delay = 017 AND delay = 15L AND delay = 15f AND delay = 1.5e1d",
        ".5 + 1. = 1.5",
        "delay BETWEEN 15 AND 20 AND late",
        "delay NOT BETWEEN 16 AND 20",
        "origin BETWEEN 'JFA' AND 'JFZ'",
        "origin > 'AAA'",
        "origin IN ('LGA', 'JFK')",
        "delay IN (1, -2, +15)",
        "delay IN (15.0)",
        "dest NOT IN ('JFK')",
        "dest LIKE 'L_X'",
        "dest LIKE 'L%'",
        "dest LIKE '%A%'",
        "dest LIKE '%'",
        "dest NOT LIKE 'L'",
        "dest NOT LIKE 'l%'",
        "lines LIKE 'one%two'",
        "percent LIKE '10!%' ESCAPE '!'",
        "percent NOT LIKE '1!%' ESCAPE '!'",
        "quote = 'it''s'",
        "missing IS NULL",
        "origin IS NOT NULL",
        "bytes IS NOT NULL",
        "carrier = 'AA' AND carrier LIKE 'A_' AND carrier IN ('AA')",
        "count + 1 = 4",
        "price = 9.5",
        "id = '00000000-0000-0000-0000-000000000007'",
        "when = 1356998400000",
        "\"x-opt-key\" = 'hyphens'",
        "a.b = 1",
        "größe = 3",
        "(late) = (delay > 3)",
        "9223372036854775807 > delay AND -9223372036854775808 < delay",
    ],
)
def test_what_holds(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "missing = 'x'",
        "NOT missing = 'x'",
        "missing <> 'x'",
        "missing",
        "NOT missing",
        "missing LIKE '%'",
        "missing NOT LIKE '%'",
        "missing IN ('x')",
        "missing NOT IN ('x')",
        "missing BETWEEN 1 AND 2",
        "missing NOT BETWEEN 1 AND 2",
        "missing + 1 > 0",
        "missing = 1 OR missing = 2",
        "late AND missing",
        "delay = '15'",
        "delay <> '15'",
        "late = 1",
        "late <> 1",
        "late > 0",
        "late < late",
        "late IN (1)",
        "origin",
        "delay",
        "origin + 1 = 1",
        "late + 1 = 2",
        "-origin = 1",
        "bytes = 'AA'",
        "bytes = bytes",
        "delay / 0 = 1 OR delay / 0 <> 1",
        "delay / 0.0 > 0",
        "distance * 1e308 * 10 + 1 < 0",
        "delay LIKE '15'",
        "origin = 'jfk'",
    ],
)
def test_what_does_not_hold(text: str) -> None:
    assert not holds(text)


@pytest.mark.parametrize(
    ("left", "right", "both", "either"),
    [
        ("1 = 1", "1 = 1", True, True),
        ("1 = 1", "1 = 2", False, True),
        ("1 = 1", "missing = 1", None, True),
        ("1 = 2", "1 = 2", False, False),
        ("1 = 2", "missing = 1", False, None),
        ("missing = 1", "missing = 1", None, None),
    ],
)
def test_three_valued_logic(left: str, right: str, both: bool | None, either: bool | None) -> None:
    for a, b in ((left, right), (right, left)):
        assert holds(f"{a} AND {b}") == (both is True)
        assert holds(f"NOT ({a} AND {b})") == (both is False)
        assert holds(f"{a} OR {b}") == (either is True)
        assert holds(f"NOT ({a} OR {b})") == (either is False)


def test_huge_exact_numbers_do_not_break_arithmetic_with_approximate_ones() -> None:
    product = " * ".join(["9223372036854775807"] * 20)
    assert not holds(f"{product} + 0.5 > 0")
    assert holds(f"{product} > 0")


def test_a_product_without_an_end_is_no_number() -> None:
    product = " * ".join(["a"] * 1000)
    assert not compile_selector(f"{product} > 0").matches({"a": 2**63 - 1}.get)
    assert compile_selector(f"{product} > 0").matches({"a": 1}.get)


def test_identifiers_are_known() -> None:
    selector = compile_selector(
        "a = 1 AND (b IN ('x') OR NOT c LIKE 'y') AND d + e BETWEEN f AND 2"
    )
    assert selector.identifiers == frozenset("abcdef")
    assert repr(compile_selector("a = 1")) == "Selector('a = 1')"


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("a =", 3, "an identifier, a literal or ("),
        ("a = 1 b", 6, "AND, OR or the end"),
        ("a = b = c", 6, "AND, OR or the end"),
        ("(a = 1", 6, ")"),
        ("a == 1", 3, "an identifier, a literal or ("),
        ("a != 1", 2, "<> for unequal, or NOT"),
        ("a = 'x", 4, "a closing '"),
        ('"a = 1', 0, 'a closing "'),
        ("a = 1 & b = 2", 6, "an identifier, a literal or an operator"),
        ("a NOT = 1", 6, "BETWEEN, IN or LIKE"),
        ("a IS 1", 5, "NULL"),
        ("a IN 'x'", 5, "("),
        ("a IN ()", 6, "a string or a number"),
        ("a IN (-'x')", 7, "a number"),
        ("a IN (b)", 6, "a string or a number"),
        ("a LIKE b", 7, "a string with % and _"),
        ("a LIKE 'x' ESCAPE 'yy'", 18, "a string of one character"),
        ("a LIKE 'x' ESCAPE 5", 18, "a string of one character"),
        ("a LIKE 'x!y' ESCAPE '!'", 7, "%, _ or ! after an !"),
        ("a LIKE 'x!' ESCAPE '!'", 7, "%, _ or ! after an !"),
        ("a BETWEEN 1", 11, "AND"),
        ("5", 0, "a condition"),
        ("a + 1", 0, "a condition"),
        ("'x'", 0, "a condition"),
        ("NOT 5", 4, "a condition"),
        ("a = 1 AND 'x'", 10, "a condition"),
        ("5 OR a = 1", 0, "a condition"),
        ("'a' + 1 = 2", 0, "a number"),
        ("1 + 'a' = 2", 4, "a number"),
        ("-'a' = 2", 1, "a number"),
        ("1 = 'a'", 4, "a number or an identifier"),
        ("a < TRUE", 4, "a number or a string or an identifier"),
        ("TRUE < a", 0, "a number or a string"),
        ("5 LIKE 'x'", 0, "a string"),
        ("a = 08", 4, "octal digits after a leading 0"),
        ("a = 9223372036854775809", 4, "a number of at most 64 bits"),
        ("a = 1e999", 4, "a number below 1.8e308"),
        ("a = 5x", 5, "a number's end"),
        ("a = 1.2.3", 7, "a number's end"),
        ("amqp.colour = 'x'", 0, "one of amqp.absolute_expiry_time"),
    ],
)
def test_a_broken_selector_is_told_where_and_what_is_right(
    text: str, position: int, expected: str
) -> None:
    with pytest.raises(SelectorSyntaxError) as caught:
        compile_selector(text)
    assert caught.value.position == position
    assert expected in caught.value.expected
    assert f"character {position + 1}: " in str(caught.value)


def test_length_is_bounded() -> None:
    fitting = "a = 1".ljust(MAX_SELECTOR_LENGTH)
    compile_selector(fitting)
    with pytest.raises(SelectorSyntaxError, match="at most 8192"):
        compile_selector(fitting + " ")


def test_parts_are_bounded_where_that_is_asked_for() -> None:
    fitting = " OR ".join(["a = 1"] * 128)  # 511 of them
    compile_selector(fitting, 512)
    assert compile_selector(f"a IN ({','.join(['1'] * 508)})", 512).matches(lambda _: 1)
    for text in (fitting + " OR b", f"{fitting} OR ((", f"{fitting} OR {fitting}"):
        with pytest.raises(SelectorSyntaxError, match="of more than 512 words") as caught:
            compile_selector(text, 512)
        assert "expected a shorter one, or IN with a list" in str(caught.value)
    compile_selector(fitting + " OR b")


@pytest.mark.parametrize("opening", ["(", "NOT ", "1 = -(", "- "])
def test_nesting_is_bounded(opening: str) -> None:
    with pytest.raises(SelectorSyntaxError, match="at most 32 levels of nesting"):
        compile_selector(opening * 1000)


def test_nesting_up_to_the_bound_is_fine() -> None:
    compile_selector("(" * MAX_NESTING + "a = 1" + ")" * MAX_NESTING)
    selector = compile_selector("NOT " * MAX_NESTING + "a = 1")
    assert selector.matches({"a": 1}.get)


@pytest.mark.parametrize("joint", [" OR ", " AND "])
def test_long_chains_are_no_nesting(joint: str) -> None:
    assert compile_selector(joint.join(["a=1"] * 1000)).matches({"a": 1}.get)


def test_long_sums_are_no_nesting() -> None:
    assert compile_selector("+".join(["a"] * 3000) + "=3000").matches({"a": 1}.get)


def test_a_hostile_like_pattern_costs_text_times_pattern() -> None:
    selector = compile_selector(f"a LIKE '{'%a' * 60}%b'")
    assert not selector.matches({"a": "a" * 5000}.get)
    assert selector.matches({"a": "a" * 5000 + "b"}.get)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (" OR ".join(["a LIKE '%a%b%'"] * 400), {"a": "a" * 200_000}),
        ("a LIKE '%" + "_" * 30 + "b%'", {"a": "a" * 200_000}),
        (" OR ".join(["a LIKE '%____b%'"] * 100), {"a": "a" * 9_000}),
        (" OR ".join(["a = b"] * 800), {"a": "a" * 250_000, "b": "a" * 249_999 + "b"}),
    ],
)
def test_an_evaluation_that_takes_too_many_steps_ends(text: str, values: dict[str, str]) -> None:
    selector = compile_selector(text)
    with pytest.raises(SelectorCostError, match=f"more than {STEPS_MAX} steps"):
        selector.matches(values.get)
    assert not selector.matches({"a": "x"}.get)  # each evaluation has all of them


def test_what_people_write_takes_few_steps() -> None:
    """Even of the longest text that a selector gets to see."""
    long = "a" * 256 * 1024
    conditions = " OR ".join(f"a LIKE '%{word}%'" for word in ("error", "b" * 40, "lost", "x_y"))
    assert not compile_selector(conditions).matches({"a": long}.get)
    choices = ", ".join(f"'{number}'" for number in range(900))
    assert compile_selector(f"a IN ({choices})").matches({"a": "899"}.get)


@pytest.mark.parametrize(
    "pattern", ["a%", "%a", "%a%", "a%a", "%a_%b%", "a", "", "%", "%%", "_", "a%ab%b"]
)
@pytest.mark.parametrize("text", ["", "a", "aa", "ab", "aab", "abab", "aabb", "a\nb", "acbb"])
def test_like_is_what_a_regular_expression_says(pattern: str, text: str) -> None:
    expression = pattern.replace("%", ".*").replace("_", ".")
    fits = re.fullmatch(expression, text, re.DOTALL) is not None
    assert compile_selector(f"a LIKE '{pattern}'").matches({"a": text}.get) == fits


@dataclass
class Message:
    """What a node or a client has in hand."""

    subject: str | None = None
    message_id: object = None
    priority: int | None = None
    durable: bool | None = None
    creation_time: object = None
    delivery_count: int = 0
    properties: dict[str, object] = field(default_factory=dict)


@pytest.mark.parametrize(
    "text",
    [
        "JMSType = 'flight' AND amqp.subject = 'flight'",
        "JMSPriority = 4 AND amqp.priority = 4",
        "JMSDeliveryMode = 'PERSISTENT' AND amqp.durable",
        "JMSMessageID = '00000000-0000-0000-0000-000000000007'",
        "JMSTimestamp = 1000",
        "JMSXDeliveryCount = 1 AND NOT JMSRedelivered",
        "JMSCorrelationID IS NULL AND amqp.group_id IS NULL",
        "colour = 'red' AND subject = 'a property'",
    ],
)
def test_names_of_fields(text: str) -> None:
    message = Message(
        subject="flight",
        message_id=UUID(int=7),
        durable=True,
        creation_time=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        properties={"colour": "red", "subject": "a property"},
    )
    sections = section_lookup(message, message, message.properties)
    assert compile_selector(text).matches(sections)


def test_a_message_without_sections_has_the_defaults_of_the_header() -> None:
    lookup = section_lookup(None, None, None)
    text = (
        "JMSPriority = 4 AND JMSDeliveryMode = 'NON_PERSISTENT' AND JMSType IS NULL AND x IS NULL"
    )
    assert compile_selector(text).matches(lookup)
    assert compile_selector("amqp.delivery_count = 0").matches(lookup)
