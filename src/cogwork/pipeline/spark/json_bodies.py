"""Bodies that are JSON, as a column of a type that the user names.

Theory of operation. A value is what Spark's `from_json` makes of it, or the body is null as a
whole: it is not JSON, or some value in it does not fit its type. What Spark itself would change
without a word does not fit either: a number that is too large for a float, a tinyint or a
timestamp, half of a surrogate pair, and a time whose date is the day of the query. The column
`body` has the octets. So `where("body_json is null and body is not null")` lists such bodies.

A body is decoded twice at most. The first decoder is msgspec's, in C, for a type that says all that
can be said there; it takes most bodies, and nothing that does not fit. Those that it refuses are
read again, token by token (`json_text`), by rules that it does not have.
"""

from __future__ import annotations

import base64
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Protocol, Required, TypedDict

import msgspec
import pyarrow as pa

from cogwork.pipeline.spark.json_text import Kind, checked, compact
from cogwork.pipeline.spark.json_text import Tokens as _Tokens
from cogwork.pipeline.spark.json_times import date_days, timestamp_us

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.pipeline.spark.json_text import Token, Tokens
    from cogwork.pipeline.spark.json_times import Zone

__all__ = ("COLUMN", "parsed")

COLUMN = "body_json"

BODY_ERRORS = (ValueError, ArithmeticError, RecursionError)
"""The body is not JSON, does not fit, or nests too deeply."""

FLOAT_END = 3.4028235677973366e38
"""From here on a double may be too large for a float, and the exact limits decide."""
ENDS = {
    32: ((1 << 128) - (1 << 103), float((1 << 128) - (1 << 104))),
    64: ((1 << 1024) - (1 << 970), float((1 << 1024) - (1 << 971))),
}
"""What is rounded to infinity, and the largest number that there is, by the bits of the type."""

NO_NUMBERS = {
    "NaN": float("nan"),
    **dict.fromkeys(("+INF", "+Infinity", "Infinity"), float("inf")),
    **dict.fromkeys(("-INF", "-Infinity"), float("-inf")),
}

DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
DECIMAL_EXPONENT_MAX = 40
"""No decimal has as many digits."""
EXACT = Context(prec=5000)

BASE64_GROUP = r"[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}=="
BASE64 = re.compile(rf"(?:[\0-\x20]*(?:{BASE64_GROUP}))*[\0-\x20]*")
"""There may be blanks between groups, and none in them; each may be padded."""
PADDED_GROUPS = re.compile(r"[^=]+=*")

SECOND_US = 1_000_000
INT64 = range(-(1 << 63), 1 << 63)

UNFIT = "a value does not fit its type"


def parsed(bodies: pa.Array, kind: pa.DataType, zone: Zone = 0) -> pa.Array:
    """Return what bodies say, in a type; null for those that do not fit it.

    Args:
        bodies: Octets.
        kind: A struct, a list or a map, as Arrow has it. Fields that a body has besides are left
            out, those that it lacks are null.
        zone: The time zone of timestamps that name none.
    """
    reader = _reader_of(kind, zone)
    decoder = msgspec.json.Decoder(reader.hint, dec_hook=_converted, float_hook=Decimal)

    def value_of(body: bytes | None) -> object:
        if body is None:
            return None
        try:
            text = body.decode()  # the quick decoder does not look at all octets
            try:
                return decoder.decode(text)
            except ValueError:
                return _slowly_read(text, reader)
        except BODY_ERRORS:
            return None

    return pa.array([value_of(body) for body in bodies.to_pylist()], kind)


def _slowly_read(text: str, reader: _Reader) -> object:
    tokens = _Tokens(text)
    token = tokens.value()
    if token.kind is Kind.NULL:
        found: object = None
    elif token.kind is Kind.OBJECT and isinstance(reader, _List) and reader.is_of_structs:
        found = [reader.item.read(token, tokens)]  # Spark takes one for a list of one
    else:
        found = reader.read(token, tokens)
    tokens.end()
    return found


class _Reader(Protocol):
    """Reads values of one type.

    Attributes:
        hint: The type, as the quick decoder knows it; without null.
    """

    hint: Any

    def read(self, token: Token, tokens: Tokens) -> object:
        """Read a value that is not null.

        Raises:
            ValueError: It does not fit, or is malformed.
            ArithmeticError: It does not fit.
        """


def _reader_of(kind: pa.DataType, zone: Zone) -> _Reader:
    if pa.types.is_struct(kind):
        return _Struct(kind, zone)
    if pa.types.is_list(kind):
        return _List(kind, zone)
    if pa.types.is_map(kind):
        return _Map(kind, zone)
    return _Scalar(*_scalar(kind, zone))


def _maybe(hint: Any, *, is_nullable: bool) -> Any:  # noqa: ANN401 # types of the decoder
    return hint | None if is_nullable else hint


class _Struct:
    """Reads objects whose fields are known."""

    def __init__(self, kind: pa.StructType, zone: Zone) -> None:
        self._readers = {field.name: _reader_of(field.type, zone) for field in kind}
        self._needed = frozenset(field.name for field in kind if not field.nullable)
        hints = {
            name: Required[reader.hint]
            if name in self._needed
            else NotRequired[_maybe(reader.hint, is_nullable=True)]
            for name, reader in self._readers.items()
        }
        # The decoder misses fields of a TypedDict whose names are not ASCII: it is not asked.
        is_known = all(name.isascii() for name in self._readers)
        self.hint: Any = _fields(hints) if is_known else UNKNOWN

    def read(self, token: Token, tokens: Tokens) -> object:
        _expect(token.kind is Kind.OBJECT)
        found: dict[str, object] = {}
        for name, value in tokens.fields():
            reader = self._readers.get(name)
            if reader is None:
                tokens.skip(value)
            else:
                is_nullable = name not in self._needed
                found[name] = _read_item(reader, value, tokens, is_nullable=is_nullable)
        _expect(self._needed <= found.keys())
        return found


def _fields(hints: dict[str, Any]) -> Any:  # noqa: ANN401 # as above
    return TypedDict("Fields", hints)  # type: ignore[operator] # made as it is needed


class _List:
    """Reads lists."""

    def __init__(self, kind: pa.ListType, zone: Zone) -> None:
        self.item = _reader_of(kind.value_type, zone)
        self.is_of_structs = isinstance(self.item, _Struct)
        self._is_nullable = kind.value_field.nullable
        self.hint: Any = list[_maybe(self.item.hint, is_nullable=self._is_nullable)]  # type: ignore[misc] # as above

    def read(self, token: Token, tokens: Tokens) -> object:
        _expect(token.kind is Kind.LIST)
        return [
            _read_item(self.item, value, tokens, is_nullable=self._is_nullable)
            for value in tokens.items()
        ]


class _Map:
    """Reads objects whose fields are not known."""

    def __init__(self, kind: pa.MapType, zone: Zone) -> None:
        self._item = _reader_of(kind.item_type, zone)
        self._is_nullable = kind.item_field.nullable
        self.hint: Any = dict[str, _maybe(self._item.hint, is_nullable=self._is_nullable)]  # type: ignore[misc] # as above

    def read(self, token: Token, tokens: Tokens) -> object:
        _expect(token.kind is Kind.OBJECT)
        return {
            checked(name): _read_item(self._item, value, tokens, is_nullable=self._is_nullable)
            for name, value in tokens.fields()
        }


class _Scalar:
    """Reads single values."""

    def __init__(self, hint: Any, convert: Callable[[object], object] | None) -> None:  # noqa: ANN401 # as above
        self.hint = hint
        self._convert = convert

    def read(self, token: Token, tokens: Tokens) -> object:
        if self._convert is None:
            return checked(token.text) if token.kind is Kind.TEXT else compact(token, tokens)
        return self._convert(_meant(token))


def _expect(is_so: bool) -> None:
    if not is_so:
        raise ValueError(UNFIT)


def _read_item(reader: _Reader, token: Token, tokens: Tokens, *, is_nullable: bool) -> object:
    if token.kind is not Kind.NULL:
        return reader.read(token, tokens)
    _expect(is_nullable)
    return None


def _meant(token: Token) -> object:
    """Return what a token means that is a value by itself, as the quick decoder has it."""
    if token.kind is Kind.TEXT:
        return token.text
    if token.kind is Kind.INTEGER:
        return int(token.text)
    if token.kind is Kind.FRACTION:
        return Decimal(token.text)
    if token.kind is Kind.NO_NUMBER:
        return NO_NUMBERS[token.text]
    _expect(token.kind in {Kind.TRUE, Kind.FALSE})
    return token.kind is Kind.TRUE


# -- single values, as they are decoded, in their type


def _scalar(kind: pa.DataType, zone: Zone) -> tuple[Any, Callable[[object], object] | None]:
    """Return what the quick decoder is to take for a type, and what converts it."""
    if pa.types.is_boolean(kind):
        return bool, _truth
    if pa.types.is_integer(kind):
        end = 1 << (kind.bit_width - 1)
        return Annotated[int, msgspec.Meta(ge=-end, le=end - 1)], _integer_in(range(-end, end))
    if pa.types.is_floating(kind):
        bounds = msgspec.Meta(gt=-FLOAT_END, lt=FLOAT_END)
        hint = Annotated[float, bounds] if kind.bit_width == 32 else float
        return hint, _float_of(kind.bit_width)
    if pa.types.is_string(kind):
        return str, None
    converts: Callable[[object], object]
    if pa.types.is_decimal(kind):
        converts = _decimal_of(kind.precision, kind.scale)
    elif pa.types.is_date(kind):
        converts = _date
    elif pa.types.is_timestamp(kind):
        converts = _timestamp_of(zone if kind.tz else None)
    elif pa.types.is_binary(kind):
        converts = _octets
    else:
        raise TypeError(f"nothing in JSON is read as {kind}")
    return _Taken("Taken", (), {"convert": staticmethod(converts)}), converts


class _Taken(type):
    """Types that the quick decoder leaves to a conversion, of which it takes whatever comes."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


def _refuse(_: object) -> object:
    raise ValueError(UNFIT)


UNKNOWN = _Taken("Unknown", (), {"convert": staticmethod(_refuse)})
"""What the quick decoder refuses in any case."""


def _converted(kind: Any, value: object) -> object:  # noqa: ANN401 # a type made above
    return kind.convert(value)


def _truth(value: object) -> object:
    _expect(isinstance(value, bool))
    return value


def _integer_in(wanted: range) -> Callable[[object], object]:
    def convert(value: object) -> object:
        _expect(type(value) is int and value in wanted)
        return value

    return convert


def _float_of(bits: int) -> Callable[[object], object]:
    end, largest = ENDS[bits]

    def convert(value: object) -> object:
        if isinstance(value, str):
            _expect(value in NO_NUMBERS)
            return NO_NUMBERS[value]
        if isinstance(value, float):  # as it is not a number
            return value
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise ValueError(UNFIT)
        _expect(-end < value < end)
        return max(-largest, min(float(value), largest))  # a double may be rounded up to the limit

    return convert


def _decimal_of(precision: int, scale: int) -> Callable[[object], object]:
    unit, end = Decimal(1).scaleb(-scale), 10 ** (precision - scale)

    def convert(value: object) -> object:
        if isinstance(value, str):
            value = value.replace(",", "")
            _expect(DECIMAL.fullmatch(value) is not None)
        _expect(type(value) in {str, int, Decimal})
        exact = Decimal(value)  # type: ignore[arg-type] # seen above
        _expect(exact.adjusted() < DECIMAL_EXPONENT_MAX)
        rounded = exact.quantize(unit, ROUND_HALF_UP, EXACT)
        _expect(-end < rounded < end)
        return rounded

    return convert


def _date(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(UNFIT)
    return date_days(value)


def _timestamp_of(zone: Zone | None) -> Callable[[object], object]:
    def convert(value: object) -> object:
        if isinstance(value, str):
            return timestamp_us(value, zone)
        if isinstance(value, bool) or not isinstance(value, int) or zone is None:
            raise ValueError(UNFIT)
        _expect(value * SECOND_US in INT64)
        return value * SECOND_US

    return convert


def _octets(value: object) -> object:
    if not isinstance(value, str) or BASE64.fullmatch(value) is None:
        raise ValueError(UNFIT)
    return b"".join(map(base64.b64decode, PADDED_GROUPS.findall(value)))
