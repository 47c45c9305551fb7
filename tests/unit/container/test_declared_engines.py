"""Which engines a stream may have that somebody declares while the container runs."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest
from hosted import LISTEN, Hosted

from cogwork.cluster.declarations import Declaration
from cogwork.config.engine_checks import demand_installed
from cogwork.config.settings import Configuration, Engine
from cogwork.container.vhost.engines import VhostEngines
from cogwork.container.vhost.stream_declarations import StreamDeclarations
from cogwork.plugin.management import ManagementError

if TYPE_CHECKING:
    from cogwork.cluster.declarations import Value

PATH = "this:Host"
"""A module that nothing else imports, and that prints a poem once it is."""


def test_who_declares_a_stream_has_nothing_imported() -> None:
    view = Hosted().container.vhosts[""].view
    assert view is not None
    with pytest.raises(ManagementError, match="there is no engine 'this:Host'"):
        view.declare_stream("stream/a", {"engine": PATH})
    assert view.stream("stream/a") is None
    assert "this" not in sys.modules


def test_an_engine_that_the_configuration_names_is_there() -> None:
    configuration = Configuration(id="a", listeners=[LISTEN], engines=[Engine(name=PATH)])
    kinds = Hosted(configuration).container.engines.kinds
    demand_installed(kinds, {"engine": PATH})
    demand_installed(kinds, {})


@pytest.mark.parametrize("replicas", [3, ["a", "b"], "many"])
def test_an_option_of_the_engine_may_be_called_like_one_of_ours(replicas: Value) -> None:
    declarations = StreamDeclarations(Hosted().container.vhosts[""])
    options: dict[str, Value] = {"engine": "nats", "replicas": replicas, "retention_s": 60.0}
    declarations.follow(Declaration(1, "stream", "", "orders", options))
    stream = declarations.stream("stream/orders")
    assert stream is not None
    assert stream.options.rest == {"replicas": replicas, "retention_s": 60.0}


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("queue/x", "'queue/x': a topic is expected"),
        (f"topic/{'w.' * 128}w", "129 words; at most 128 are allowed"),
    ],
)
def test_a_stream_that_cannot_capture_is_opened_nowhere(
    pattern: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []

    async def open_(*words: object, **_options: object) -> None:
        opened.append(words)

    monkeypatch.setattr(VhostEngines, "open", open_)

    async def story() -> None:
        vhost = Hosted().container.vhosts[""]
        assert vhost.view is not None
        with pytest.raises(ManagementError, match=why):
            vhost.view.declare_stream("stream/a", {"capture": ["topic/x", pattern]})
        await asyncio.sleep(0.01)
        topic = vhost.nodes["topic"]
        assert topic.status()["subscribers"] == 0

    asyncio.run(story())
    assert opened == []


@pytest.mark.parametrize(("options", "is_told"), [({"engine": "raft"}, True), ({}, False)])
def test_what_cannot_be_opened_here_is_deleted_wherever_it_is(
    options: dict[str, Value], is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[str] = []

    async def refuse(*_words: object, **_options: object) -> None:
        raise ValueError("it is damaged here")

    async def delete(_engines: object, _kind: str, stream: str, *, is_shared: bool) -> None:
        assert not is_shared
        deleted.append(stream)

    monkeypatch.setattr(VhostEngines, "open", refuse)
    monkeypatch.setattr(VhostEngines, "delete", delete)

    async def story() -> None:
        declarations = StreamDeclarations(Hosted().container.vhosts[""])
        for address in ("stream/a", "stream/b"):
            declarations.declare(address, options)
            stream = declarations.stream(address)
            assert stream is not None
            async with asyncio.timeout(30):
                while stream.state != "failed":
                    await asyncio.sleep(0.01)
        declarations.abandon("stream/a")
        assert declarations.stream("stream/a") is None
        assert await declarations.delete("stream/b")
        assert declarations.stream("stream/b") is None or is_told

    asyncio.run(story())
    assert deleted == ["b"] * is_told


def test_replicas_that_are_named_twice_are_refused_where_they_are_declared() -> None:
    view = Hosted().container.vhosts[""].view
    assert view is not None
    twice = {"replicas": ["hosted", "hosted"]}
    with pytest.raises(ManagementError, match="replicas names 'hosted' twice"):
        view.declare_stream("stream/a", {"engine": "raft", **twice})
    with pytest.raises(ManagementError, match="replicas names 'hosted' twice"):
        view.declare_queue("queue/a", {"durability": "replicated", **twice})
    assert view.queue("queue/a") is None


@pytest.mark.parametrize("key", ["engine", "capture", "home", "is_shared"])
def test_what_no_engine_has_is_not_passed_over(key: str) -> None:
    view = Hosted().container.vhosts[""].view
    assert view is not None
    with pytest.raises(ManagementError, match=f"no engine has an option '{key}'"):
        view.declare_stream("stream/a", {"options": {key: "topic/x"}})
    assert view.stream("stream/a") is None
