"""Who decides over messages, and when: at once, in a thread, or once it is known what holds."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

import pytest

from cogwork.amqp.kinds import composite_from
from cogwork.amqp.outcomes import Rejected
from cogwork.amqp.types import Described
from cogwork.config.reading import parse
from cogwork.container.schemas import checker as checking
from cogwork.container.schemas import judge as judging
from cogwork.container.schemas.checker import Checker
from cogwork.container.schemas.guards import Guards
from cogwork.dataplane.core import Core
from cogwork.dataplane.encoding.codec import decode
from cogwork.dataplane.message.messages import Message
from cogwork.schema import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.dataplane.addresses.checked import CheckedLink

RULES = """
[[schema]]
address = "topic/#"

[[schema]]
address = "queue/#"
policy = "enforce-registered"
"""
ITEM = {"type": "integer", "minimum": 0, "maximum": 9}
ORDER = {"properties": {"id": {"type": "integer"}, "items": {"items": ITEM}}}


class Sender:
    """A link, as the checker sees it."""

    def __init__(self, *messages: tuple[str, bytes, bool]) -> None:
        self.messages = [
            (address.encode(), Message(body).encode(), settled)
            for address, body, settled in messages
        ]
        self.verdicts: list[bytes | None] = []
        self.given_back = 0

    @property
    def waiting(self) -> int:
        return len(self.messages)

    def look(self, count_max: int, size_max: int) -> list[tuple[bytes, bytes, bool]]:
        return self.messages[:count_max]

    def decide(self, verdicts: list[bytes | None]) -> None:
        self.verdicts += verdicts
        del self.messages[: len(verdicts)]

    def give_back(self) -> int:
        self.given_back += len(self.messages)
        settled = sum(is_settled for _, _, is_settled in self.messages)
        self.messages = []
        return settled


def sender(*messages: tuple[str, bytes, bool]) -> Sender:
    return Sender(*messages)


def rejected(verdict: bytes | None) -> Rejected:
    assert verdict is not None
    described, _ = decode(verdict, 0)
    assert isinstance(described, Described)
    found = composite_from(described)
    assert isinstance(found, Rejected)
    return found


def condition_of(verdict: bytes | None) -> str | None:
    if verdict is None:
        return None
    error = rejected(verdict).error
    assert error is not None
    return str(error.condition)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


@pytest.fixture
def checker(threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> Checker:
    """Have all the time that it needs in a turn."""
    monkeypatch.setattr(checking, "SLICE_S", 60.0)
    return Checker(Core(), Guards(parse(RULES).schemas), lambda: threads)


def registry(**definitions: object) -> Registry:
    """Everything below the address, with `_` for `/`."""
    found = Registry()
    for name, definition in definitions.items():
        address = name.replace("_", "/")
        found.apply(found.register(address, "json", json.dumps(definition).encode()))
    return found


def arrive(checker: Checker, *senders: Sender) -> None:
    checker.on_arrivals(cast("list[CheckedLink]", list(senders)))


async def until(condition: object, link: Sender, count: int) -> None:
    async with asyncio.timeout(30):
        while len(link.verdicts) < count:
            await asyncio.sleep(0.001)


def compiled(found: Registry, address: str) -> Registry:
    """The registry, once somebody has used a schema of it."""
    found.check(address, None, b"{}")
    return found


def test_small_messages_are_decided_over_at_once(checker: Checker) -> None:
    async def run() -> None:
        checker.know(compiled(registry(topic_a=ORDER), "topic/a"))
        link = sender(
            ("topic/a", b'{"id": 1}', False),
            ("topic/a", b'{"id": "x"}', False),
            ("topic/b", b"{}", True),
            ("queue/b", b"{}", False),
            ("free", b"{", False),
            ("topic/a", b'{"id": ""}', True),
        )
        arrive(checker, link)
        conditions = [condition_of(each) for each in link.verdicts]
        mismatch, missing = "cogwork:schema-mismatch", "cogwork:schema-missing"
        assert conditions == [None, mismatch, missing, None, None, mismatch]
        error = rejected(link.verdicts[1]).error
        assert error is not None
        assert error.description == "$.id: 'x' is not of type 'integer'"
        assert error.info == {"schema": "topic/a", "version": 1, "path": "$.id"}
        assert (checker.checked, checker.rejected, checker.dropped) == (5, 1, 2)
        assert checker.invalid == {"topic/a": 2, "topic/b": 1}

    asyncio.run(run())


def test_what_costs_more_is_done_in_a_thread_and_in_order(
    checker: Checker, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def judge(*arguments: Any) -> bytes | None:
        names.append(threading.current_thread().name)
        return judging.judge(*arguments)

    monkeypatch.setattr(checking, "judge", judge)

    async def run() -> None:
        checker.know(registry(topic_a=ORDER))
        large = json.dumps({"items": [1] * 5000}).encode()
        costly = json.dumps({"items": [8] * 1000 + [10]}).encode()
        bodies = [b'{"id": 1}', b'{"id": "x"}', large, b'{"id": ""}', costly, b'{"id": 2}']
        link = sender(*(("topic/a", body, False) for body in bodies))
        other = sender(("topic/a", b'{"id": 1}', False))
        arrive(checker, link)
        assert link.verdicts == []  # the schema is still to be compiled
        arrive(checker, link, other)
        await until(None, link, 6)
        await until(None, other, 1)
        mismatch = "cogwork:schema-mismatch"
        found = [condition_of(each) for each in link.verdicts]
        assert found == [None, mismatch, None, mismatch, mismatch, None]
        assert other.verdicts == [None]
        main = threading.current_thread().name
        assert 3 <= sum(name != main for name in names) <= 4
        assert checker.checked == 7

    asyncio.run(run())


def test_many_take_turns_with_the_event_loop(
    checker: Checker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "SLICE_S", 0.0)

    async def run() -> None:
        checker.know(compiled(registry(topic_a=ORDER), "topic/a"))
        links = [sender(*[("topic/a", b"{}", False)] * 100) for _ in range(3)]
        arrive(checker, *links)
        turns = 0
        while any(link.waiting for link in links):
            turns += 1
            await asyncio.sleep(0)
        assert turns >= 299
        assert all(link.verdicts == [None] * 100 for link in links)

    asyncio.run(run())


def test_messages_wait_until_it_is_known_what_is_registered(checker: Checker) -> None:
    async def run() -> None:
        link = sender(("topic/a", b'{"id": "x"}', False))
        arrive(checker, link)
        await asyncio.sleep(0.01)
        assert link.verdicts == []
        checker.know(registry(topic_a=ORDER))
        await until(None, link, 1)
        assert condition_of(link.verdicts[0]) == "cogwork:schema-mismatch"

    asyncio.run(run())


def test_they_do_not_wait_for_ever(checker: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "PATIENCE_S", 0.01)

    async def run() -> None:
        link = sender(("topic/a", b"{}", False), ("topic/a", b"{}", True))
        arrive(checker, link)
        async with asyncio.timeout(30):
            while not link.given_back:
                await asyncio.sleep(0.001)
        assert link.given_back == 2
        assert checker.dropped == 1
        assert link.verdicts == []

    asyncio.run(run())


def test_a_schema_that_cannot_be_used_is_told(checker: Checker) -> None:
    async def run() -> None:
        found = Registry()
        event = found.register("topic/a", "json", b"{}")
        found.apply(event.replace(b'"kind":"json"', b'"kind":"protobuf"'))
        checker.know(found)
        link = sender(("topic/a", b"", False))
        arrive(checker, link)
        await until(None, link, 1)
        error = rejected(link.verdicts[0]).error
        assert error is not None
        assert error.condition == "cogwork:schema-unusable"
        assert str(error.description).startswith("the schema of topic/a cannot be used here: ")

    asyncio.run(run())


def test_a_fault_of_ours_stops_nobody(checker: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> bytes | None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(checking, "judge", fail)

    async def run() -> None:
        checker.know(compiled(registry(topic_a=ORDER), "topic/a"))
        link = sender(("topic/a", b"{}", False), ("topic/a", b"x" * 9000, False))
        arrive(checker, link)
        await until(None, link, 2)
        for verdict in link.verdicts:
            error = rejected(verdict).error
            assert error is not None
            assert error.condition == "amqp:internal-error"
            assert "a mistake" in str(error.description)

    asyncio.run(run())


def test_a_message_that_goes_wrong_on_its_way_stops_no_other(checker: Checker) -> None:
    class Broken(Sender):
        def decide(self, verdicts: list[bytes | None]) -> None:
            if len(self.messages) == 3:
                super().decide(verdicts[:1])
                raise RuntimeError("a mistake")
            super().decide(verdicts)

    faults: list[str] = []
    checker._core.on_error = lambda _port, error: faults.append(str(error))

    async def run() -> None:
        checker.know(compiled(registry(topic_a=ORDER), "topic/a"))
        bodies = (b'{"id": ""}', b"x" * 9000, b"{}")
        link = Broken(*(("topic/a", body, False) for body in bodies))
        arrive(checker, link)
        await until(None, link, 3)
        mismatch = "cogwork:schema-mismatch"
        assert [condition_of(each) for each in link.verdicts] == [mismatch, mismatch, None]
        assert faults == ["a mistake"]

    asyncio.run(run())


def test_a_checker_that_is_closed_gives_back(checker: Checker) -> None:
    async def run() -> None:
        checker.know(registry(topic_a=ORDER))
        link, late = sender(("topic/a", b"{}", False)), sender(("topic/a", b"{}", False))
        arrive(checker, link)
        checker.close()
        assert link.given_back == 1
        await asyncio.sleep(0.05)
        arrive(checker, late)
        assert late.given_back == 1
        assert link.verdicts == late.verdicts == []

    asyncio.run(run())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x53\x75\xa0\x05x",
        b"garbage",
        b"\x00\x53\x77\xa1\x02\xff\xff",
        Message({"id": 1}).encode(),
        Message(b"{}", content_type="text/plain").encode(),
        Message(b"{}", content_encoding="gzip").encode(),
    ],
)
def test_octets_that_are_no_message_are_rejected(checker: Checker, data: bytes) -> None:
    found = compiled(registry(topic_a=ORDER), "topic/a")
    verdict = judging.judge(found.version_of("topic/a"), 1, "topic/a", data)
    assert condition_of(verdict) in ("cogwork:schema-mismatch", "amqp:decode-error")
