"""Selectors under random conditions, held to a slow reading of the specification."""

import re

from hypothesis import given
from hypothesis import strategies as st

from cogwork.router.selectors import Selector, SelectorSyntaxError, compile_selector

VALUES: dict[str, object] = {"t": True, "f": False, "n": 3, "x": 2.5, "s": "ab"}
ATOMS = [
    ("t", True),
    ("f", False),
    ("u = 1", None),
    ("n = 3", True),
    ("n > x", True),
    ("s = 'b'", False),
    ("s LIKE 'a_'", True),
    ("n IN (1, 2)", False),
    ("n NOT BETWEEN 1 AND 2", True),
    ("u IS NULL", True),
    ("s < n", False),
]
Truth = tuple[str, bool | None]


def negated(truth: Truth) -> Truth:
    text, value = truth
    return f"NOT ({text})", None if value is None else not value


def both(truths: tuple[Truth, Truth]) -> Truth:
    (a, x), (b, y) = truths
    value = False if x is False or y is False else None if None in (x, y) else True
    return f"({a}) AND ({b})", value


def either(truths: tuple[Truth, Truth]) -> Truth:
    (a, x), (b, y) = truths
    value = True if x is True or y is True else None if None in (x, y) else False
    return f"({a}) OR ({b})", value


TRUTHS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        inner.map(negated), st.tuples(inner, inner).map(both), st.tuples(inner, inner).map(either)
    ),
    max_leaves=12,
)


@given(TRUTHS)
def test_conditions_have_three_values(truth: Truth) -> None:
    text, value = truth
    assert compile_selector(text).matches(VALUES.get) == (value is True)
    assert compile_selector(f"NOT ({text})").matches(VALUES.get) == (value is False)


@given(st.lists(st.tuples(st.sampled_from("+-*"), st.integers(0, 99)), max_size=8))
def test_arithmetic_binds_as_in_python(steps: list[tuple[str, int]]) -> None:
    text = "7" + "".join(f" {sign} {number}" for sign, number in steps)
    expected = 7
    terms, signs = [[7]], ["+"]
    for sign, number in steps:
        if sign == "*":
            terms[-1].append(number)
        else:
            terms.append([number])
            signs.append(sign)
    expected = 0
    for sign, factors in zip(signs, terms, strict=True):
        product = 1
        for factor in factors:
            product *= factor
        expected += product if sign == "+" else -product
    assert compile_selector(f"{text} = v").matches({"v": expected}.get)


def like(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return like(pattern[1:], text) or (bool(text) and like(pattern, text[1:]))
    return bool(text) and pattern[0] in ("_", text[0]) and like(pattern[1:], text[1:])


@given(st.text("ab%_", max_size=8), st.text("ab\n.*", max_size=8))
def test_like(pattern: str, text: str) -> None:
    assert compile_selector(f"s LIKE '{pattern}'").matches({"s": text}.get) == like(pattern, text)


@given(st.text())
def test_any_text_is_a_string(text: str) -> None:
    quoted = text.replace("'", "''")
    assert compile_selector(f"s = '{quoted}'").matches({"s": text}.get)


SIGNS = [*"ab1(),+-*/=<", "<>", ">=", "2.5", "'x'", "'%'", "amqp.to"]
KEYWORDS = ["AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "TRUE", "ESCAPE"]
PIECES = st.sampled_from(SIGNS + KEYWORDS)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=14).map(" ".join)))
def test_any_text_is_a_selector_or_told_what_is_wrong(text: str) -> None:
    selector, error = compiled(text)
    if error is not None:
        assert 0 <= error.position <= len(text)
        assert error.expected
        assert re.match(r"selector, character \d+: ", str(error))
    if selector is not None:
        for values in ({}, VALUES, {"a": "x", "b": 2}, {"a": 1, "b": True}):
            assert selector.matches(values.get) in (True, False)


def compiled(text: str) -> tuple[Selector | None, SelectorSyntaxError | None]:
    try:
        return compile_selector(text), None
    except SelectorSyntaxError as error:
        return None, error
