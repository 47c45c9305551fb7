"""From tokens to a tree, by recursive descent.

    condition  := and (OR and)*
    and        := not (AND not)*
    not        := NOT not | comparison
    comparison := sum [ (= | <> | < | <= | > | >=) sum
                      | IS [NOT] NULL
                      | [NOT] BETWEEN sum AND sum
                      | [NOT] IN ( literal (, literal)* )
                      | [NOT] LIKE string [ESCAPE string] ]
    sum        := product ((+ | -) product)*
    product    := signed ((* | /) signed)*
    signed     := (+ | -) signed | primary
    primary    := literal | TRUE | FALSE | identifier | ( condition )

Beyond JMS 1.1, which wants identifiers there: the left side of IN, LIKE and IS may be any
expression, and IN takes numbers too. Types that can be known from the text are checked here:
`NOT 5` and `'a' + 1` are errors of syntax, not conditions that never hold.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NoReturn

from cogwork.router.selectors.lexer import SelectorSyntaxError, Token, TokenKind, tokenize
from cogwork.router.selectors.names import AMQP_PREFIX, FIELD_NAMES
from cogwork.router.selectors.tree import (
    All,
    AnyOf,
    Arithmetic,
    Comparison,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    Tree,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("MAX_NESTING", "parse")

MAX_NESTING = 32
"""Parentheses, NOTs and signs inside each other; it bounds the stack of parser and evaluator."""

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


ARITHMETIC = frozenset("+-*/")
OPERANDS = frozenset((TokenKind.IDENTIFIER, TokenKind.NUMBER, TokenKind.STRING))


class Kind(Enum):
    """What an expression gives, as far as its text tells; the value is for errors."""

    CONDITION = "a condition"
    NUMBER = "a number"
    STRING = "a string"
    OPEN = "an identifier"


_KINDS: dict[type, Kind] = {
    Identifier: Kind.OPEN,
    Arithmetic: Kind.NUMBER,
    Negative: Kind.NUMBER,
    bool: Kind.CONDITION,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.STRING,
}


def parse(text: str, parts_max: int | None = None) -> Tree | None:
    """Make the tree of a selector; None for the empty one.

    Args:
        text: The selector.
        parts_max: As `tokenize` takes it.

    Raises:
        SelectorSyntaxError: The text is no selector, too long, or nested too deeply.
    """
    tokens = tokenize(text, parts_max)
    return _Parser(tokens).parse() if len(tokens) > 1 else None


class _Parser:
    """Reads the tokens of one selector from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        # Asked for at each level of each part: keywords and signs as written, None for the rest.
        self._words = [
            token.value if token.kind in (TokenKind.KEYWORD, TokenKind.SIGN) else None
            for token in tokens
        ]
        self._is_operand = [token.kind in OPERANDS for token in tokens]
        self._next = 0
        self._nesting = 0

    def parse(self) -> Tree:
        start = self._token
        tree = self._condition()
        if self._token.kind is not TokenKind.END:
            self._fail("AND, OR or the end")
        return _require(tree, start, Kind.CONDITION)

    # --- tokens ---

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _advance(self) -> Token:
        token = self._token
        self._next += 1
        return token

    def _at(self, *values: str) -> bool:
        return self._words[self._next] in values

    def _accept(self, *values: str) -> bool:
        found = self._words[self._next] in values
        self._next += found
        return found

    def _expect(self, value: str) -> None:
        if not self._accept(value):
            self._fail(value)

    def _fail(self, expected: str) -> NoReturn:
        raise SelectorSyntaxError(self._token.position, self._token.shown, expected)

    def _nested(self, parse: Callable[[], Tree]) -> Tree:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            self._fail(f"at most {MAX_NESTING} levels of nesting")
        tree = parse()
        self._nesting -= 1
        return tree

    # --- conditions ---

    def _condition(self) -> Tree:
        terms = self._chain("OR", self._and)
        return terms[0] if len(terms) == 1 else AnyOf(tuple(terms))

    def _and(self) -> Tree:
        terms = self._chain("AND", self._not)
        return terms[0] if len(terms) == 1 else All(tuple(terms))

    def _chain(self, keyword: str, parse: Callable[[], Tree]) -> list[Tree]:
        start = self._token
        terms = [parse()]
        while self._accept(keyword):
            _require(terms[-1], start, Kind.CONDITION)
            start = self._token
            terms.append(_require(parse(), start, Kind.CONDITION))
        return terms

    def _not(self) -> Tree:
        if not self._accept("NOT"):
            return self._comparison()
        start = self._token
        return Not(_require(self._nested(self._not), start, Kind.CONDITION))

    def _comparison(self) -> Tree:
        start = self._token
        left = self._sum()
        if self._at(*COMPARISONS):
            return self._compared(start, left)
        if self._accept("IS"):
            negated = self._accept("NOT")
            self._expect("NULL")
            return Not(IsNull(left)) if negated else IsNull(left)
        negated = self._accept("NOT")
        if self._accept("BETWEEN"):
            tree = self._between(start, left)
        elif self._accept("IN"):
            tree = self._in(start, left)
        elif self._accept("LIKE"):
            tree = self._like(start, left)
        elif negated:
            self._fail("BETWEEN, IN or LIKE")
        else:
            return left
        return Not(tree) if negated else tree

    def _compared(self, start: Token, left: Tree) -> Tree:
        operator = self._advance()
        if operator.value not in ("=", "<>"):
            _require(left, start, Kind.NUMBER, Kind.STRING)
        right_start = self._token
        right = self._sum()
        kinds = {_kind(left), Kind.OPEN} if _kind(left) is not Kind.OPEN else set(Kind)
        if operator.value not in ("=", "<>"):
            kinds.discard(Kind.CONDITION)
        _require(right, right_start, *kinds)
        return Comparison(str(operator.value), left, right)

    def _between(self, start: Token, value: Tree) -> Tree:
        _require(value, start, Kind.NUMBER, Kind.STRING)
        bounds = []
        for operator in (">=", "<="):
            bound_start = self._token
            bound = _require(self._sum(), bound_start, Kind.NUMBER, Kind.STRING)
            bounds.append(Comparison(operator, value, bound))
            if operator == ">=":
                self._expect("AND")
        return All(tuple(bounds))

    def _in(self, start: Token, value: Tree) -> Tree:
        _require(value, start, Kind.NUMBER, Kind.STRING)
        self._expect("(")
        choices = [self._choice()]
        while self._accept(","):
            choices.append(self._choice())
        self._expect(")")
        return In(value, tuple(choices))

    def _choice(self) -> str | int | float:
        negative = self._at("-")
        signed = self._accept("-", "+")
        if self._token.kind is TokenKind.NUMBER:
            number = self._advance().value
            return -number if negative and not isinstance(number, str) else number
        if signed or self._token.kind is not TokenKind.STRING:
            self._fail("a number" if signed else "a string or a number")
        return self._advance().value

    def _like(self, start: Token, value: Tree) -> Tree:
        _require(value, start, Kind.STRING)
        pattern_token = self._token
        pattern = self._string("a string with % and _")
        escape = None
        if self._accept("ESCAPE"):
            if len(str(self._token.value)) != 1:
                self._fail("a string of one character")
            escape = self._string("a string of one character")
            _check_escapes(pattern, escape, pattern_token)
        return Like(value, pattern, escape)

    def _string(self, expected: str) -> str:
        if self._token.kind is not TokenKind.STRING:
            self._fail(expected)
        return str(self._advance().value)

    # --- values ---

    def _sum(self) -> Tree:
        if self._is_operand[self._next] and self._words[self._next + 1] not in ARITHMETIC:
            return self._primary()  # what mostly stands there, without looking at each level
        return self._arithmetic(self._product, "+", "-")

    def _product(self) -> Tree:
        return self._arithmetic(self._signed, "*", "/")

    def _arithmetic(self, parse: Callable[[], Tree], *operators: str) -> Tree:
        start = self._token
        first = parse()
        steps = []
        while self._at(*operators):
            _require(first, start, Kind.NUMBER)
            operator = str(self._advance().value)
            step_start = self._token
            steps.append((operator, _require(parse(), step_start, Kind.NUMBER)))
        return Arithmetic(first, tuple(steps)) if steps else first

    def _signed(self) -> Tree:
        negative = self._at("-")
        if not self._accept("-", "+"):
            return self._primary()
        start = self._token
        value = _require(self._nested(self._signed), start, Kind.NUMBER)
        return Negative(value) if negative else value

    def _primary(self) -> Tree:
        token = self._token
        if self._accept("("):
            tree = self._nested(self._condition)
            self._expect(")")
            return tree
        if self._accept("TRUE", "FALSE"):
            return Literal(token.value == "TRUE")
        if token.kind in (TokenKind.STRING, TokenKind.NUMBER):
            return Literal(self._advance().value)
        if token.kind is TokenKind.IDENTIFIER:
            return _identifier(self._advance())
        return self._fail("an identifier, a literal or (")


def _identifier(token: Token) -> Identifier:
    name = str(token.value)
    if name.startswith(AMQP_PREFIX) and name not in FIELD_NAMES:
        fields = ", ".join(sorted(each for each in FIELD_NAMES if each.startswith(AMQP_PREFIX)))
        raise SelectorSyntaxError(token.position, token.shown, f"one of {fields}")
    return Identifier(name)


def _kind(tree: Tree) -> Kind:
    shape = type(tree.value) if isinstance(tree, Literal) else type(tree)
    return _KINDS.get(shape, Kind.CONDITION)


def _require(tree: Tree, start: Token, *kinds: Kind) -> Tree:
    """Let a tree pass that may give one of `kinds`; `start` is its first token."""
    kind = _kind(tree)
    if kind is Kind.OPEN or kind in kinds:
        return tree
    wanted = " or ".join(each.value for each in Kind if each in kinds)
    raise SelectorSyntaxError(start.position, kind.value, wanted)


def _check_escapes(pattern: str, escape: str, token: Token) -> None:
    """An escape stands before `%`, `_` or itself (SQL-92 §8.5)."""
    at = 0
    while at < len(pattern):
        if pattern[at] == escape:
            at += 1
            if pattern[at : at + 1] not in ("%", "_", escape):
                raise SelectorSyntaxError(
                    token.position, f"{escape} alone", f"%, _ or {escape} after an {escape}"
                )
        at += 1
