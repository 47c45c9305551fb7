"""What codecs carry, and what they refuse."""

from __future__ import annotations

import datetime as dt
import enum
import random
import string
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID, uuid4

import msgspec
import pytest

from cogwork.dataplane.message.messages import Message
from cogwork.rpc import Unserialisable
from cogwork.rpc.codec import codec_for, codec_named, unserialisable
from cogwork.rpc.serving.method import Method, WrongArgumentsError

NAMES = ("amqp", "json", "msgpack", "protobuf")
NOW = dt.datetime(2026, 11, 22, 5, 0, 0, 123000, tzinfo=dt.UTC)


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Disk:
    size: int
    label: str = "root"


class Vm(msgspec.Struct):
    name: str
    disks: list[Disk]
    colour: Colour = Colour.RED


def carried(name: str, value: object) -> object:
    """Send a value through a message; return what arrives."""
    codec = codec_named(name)
    sent = Message(codec.encode(value), content_type=codec.content_type).encode()
    message = Message.decode(sent)
    return codec_for(message.content_type).decode(message.body)


@pytest.mark.parametrize("name", NAMES)
def test_plain_values_arrive_as_they_were(name: str) -> None:
    value = {"a": 1, "b": [None, True, -7, 2.5, "text", {"deep": {"er": []}}], "c": {}}
    assert carried(name, value) == value


@pytest.mark.parametrize("name", ["amqp", "protobuf"])
def test_amqp_and_protobuf_keep_every_type(name: str) -> None:
    value = {"at": NOW, "id": uuid4(), "raw": b"\x00\xff", "price": Decimal("1.50"), 7: "seven"}
    assert carried(name, value) == value


@pytest.mark.parametrize("name", NAMES)
def test_typed_parameters_have_every_type_back(name: str) -> None:
    def start(vm: Vm, at: dt.datetime, tags: set[str], price: Decimal, **more: object) -> None: ...

    def stop(raw: bytes, owner: UUID, day: dt.date, prices: dict[str, Decimal]) -> None: ...

    vm = Vm("one", [Disk(1), Disk(2, "data")])
    sent = {
        "vm": vm,
        "at": NOW,
        "tags": {"a", "b"},
        "price": Decimal("1.50"),
    }
    assert Method(start).arguments(carried(name, sent)) == sent
    sent = {
        "raw": b"\x00\xff",
        "owner": uuid4(),
        "day": dt.date(2026, 11, 22),
        "prices": {"x": Decimal("1.50")},
    }
    assert Method(stop).arguments(carried(name, sent)) == sent


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"vm": {"disks": [1, {"owner": object()}]}}, "vm.disks[1].owner"),
        ({"vm": Disk(size=object())}, "vm.size"),  # type: ignore[arg-type]  # on purpose
        ({"n": [1, object]}, "n[1]"),
    ],
)
def test_what_cannot_be_carried_is_named(name: str, value: dict[str, object], path: str) -> None:
    codec = codec_named(name)

    def encode(part: object) -> None:
        Message(codec.encode(part)).encode()

    with pytest.raises(Exception) as raised:  # noqa: PT011  # whatever the codec raises
        encode(value)
    found = unserialisable(value, encode, raised.value)
    assert isinstance(found, Unserialisable)
    assert found.path == path


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    codec = codec_named("amqp")
    with pytest.raises(RecursionError) as raised:
        codec.encode(loop)
    assert "itself" in str(unserialisable(loop, codec.encode, raised.value))


@pytest.mark.parametrize("name", ["json", "msgpack", "protobuf"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[" * 200_000,
        b"\x91" * 200_000,
        b'{"a": 1' + b'{"b":' * 1_000,
        b'"\xff\xfe"',
        b"\xc1",
        b"\xdf\xff\xff\xff\xff",
        "text",
        None,
        7,
    ],
    ids=lambda body: repr(body)[:12],
)
def test_hostile_bodies_are_refused_or_harmless(name: str, body: object) -> None:
    try:
        codec_named(name).decode(body)
    except (ValueError, TypeError, RecursionError, msgspec.MsgspecError):
        return
    assert body in ("text", b"", 7) or name == "protobuf"  # some text is a value after all


@pytest.mark.parametrize("name", ["json", "msgpack", "protobuf"])
def test_random_bytes_raise_nothing_unforeseen(name: str) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201  # shown where the test fails
    chance = random.Random(seed)
    codec = codec_named(name)
    for _ in range(2_000):
        body = bytearray(codec.encode({"a": [1, {"b": "text"}], "c": None}))  # type: ignore[call-overload]  # bytes
        for _ in range(chance.randrange(1, 4)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        try:
            codec.decode(bytes(body))
        except (ValueError, TypeError, RecursionError, msgspec.MsgspecError):
            continue


def test_a_body_nested_deeply_by_hand_is_refused_by_protobuf() -> None:
    body = b"\x08\x01"
    for _ in range(60):  # list (field 10) of items (field 1)
        inner = b"\x0a" + _varint(len(body)) + body
        body = b"\x52" + _varint(len(inner)) + inner
    with pytest.raises(ValueError, match=r"levels|no cogwork"):
        codec_named("protobuf").decode(body)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def test_an_unknown_codec_is_named_with_those_there_are() -> None:
    with pytest.raises(LookupError, match=r"'pickle'.*amqp.*json.*msgpack.*protobuf"):
        codec_named("pickle")
    with pytest.raises(LookupError, match="application/x-python-pickle"):
        codec_for("application/x-python-pickle")


# -- methods


def greet(name: str, times: int = 1) -> str:
    return " ".join([name] * times)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "lacks name"),
        ({"name": "x", "nmae": 1}, "no argument 'nmae'"),
        ({"name": 7}, r"name: Expected `str`, got `int`"),
        ({"name": "x", "times": "two"}, "times: Expected `int`"),
        ([1], "a map of arguments is expected, not list"),
        ({string.ascii_letters: 1, "name": "x"}, "no argument"),
        ({("a",): 1, "name": "x"}, "no argument"),
    ],
)
def test_wrong_arguments_are_named(given: object, problem: str) -> None:
    with pytest.raises(WrongArgumentsError, match=f"^greet: .*{problem}"):
        Method(greet).arguments(given)


def test_the_path_within_an_argument_is_named() -> None:
    def start(vm: Vm) -> None: ...

    with pytest.raises(WrongArgumentsError, match=r"vm\.disks\[0\]\.size"):
        Method(start).arguments({"vm": {"name": "n", "disks": [{"size": "big"}]}})


def test_a_method_takes_arguments_by_name_alone() -> None:
    def positional(a: int, /) -> None: ...

    with pytest.raises(TypeError, match="by name"):
        Method(positional)
    with pytest.raises(TypeError, match="reserved"):
        Method(greet, "$cancel")
