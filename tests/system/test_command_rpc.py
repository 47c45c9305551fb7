"""`cogwork rpc` against a service, as scripts use it."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

import cogwork.sync

from .served import Served, ran, served

if TYPE_CHECKING:
    from collections.abc import Iterator

casts: list[object] = []
cast_came = threading.Event()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A container with a service."""
    container: Served
    with (
        served(tmp_path_factory.mktemp("called"), "") as container,
        cogwork.sync.connect(container.url) as client,
    ):
        service = client.service("compute", server="host-3")

        @service.method
        def kinds(**given: object) -> dict[str, str]:
            return {name: type(value).__name__ for name, value in given.items()}

        @service.method
        def start(vm: int) -> str:
            return f"vm {vm} runs"

        @service.method
        def fail(name: str) -> None:
            raise KeyError(name)

        @service.method
        def count(limit: int) -> Iterator[int]:
            yield from range(limit)

        @service.method
        def note(what: object) -> None:
            casts.append(what)
            cast_came.set()

        with service:
            yield container.url


def rpc(url: str, *arguments: str) -> tuple[int, str, str]:
    """Run the command; return its exit code and what it printed."""
    done = ran("rpc", url, "compute", *arguments)
    return done.returncode, done.stdout, done.stderr


def test_a_text_is_printed_as_it_is(url: str) -> None:
    assert rpc(url, "start", "vm=7") == (0, "vm 7 runs\n", "")
    assert rpc(url, "start", "vm=7", "--server", "host-3", "--json") == (
        0,
        '{"result": "vm 7 runs"}\n',
        "",
    )


def test_values_are_json_or_else_texts(url: str) -> None:
    code, out, _ = rpc(
        url, "kinds", "a=1", "b=x y", 'c="1"', "d=[1]", "e=null", "f=NaN", "g=", "h={}"
    )
    found = json.loads(out)
    assert (code, list(found.values())) == (
        0,
        ["int", "str", "str", "list", "NoneType", "str", "str", "dict"],
    )


def test_parts_are_lines(url: str) -> None:
    assert rpc(url, "count", "limit=3", "--stream") == (0, "0\n1\n2\n", "")
    assert rpc(url, "count", "limit=1", "--stream", "--json")[1] == '{"part": 0}\n'


@pytest.mark.parametrize("way", ["--cast", "--fanout"])
def test_casts_and_fanouts_print_nothing(url: str, way: str) -> None:
    casts.clear()
    cast_came.clear()
    assert rpc(url, "note", f"what={way}", way) == (0, "", "")
    assert cast_came.wait(10)
    assert casts == [way]


def test_what_the_method_raised_is_one_line_and_the_traceback_on_request(url: str) -> None:
    code, out, err = rpc(url, "fail", "name=seven")
    assert (code, out) == (1, "")
    assert err == "cogwork: unicast/rpc/compute: builtins.KeyError: 'seven'\n"
    code, out, err = rpc(url, "fail", "name=seven", "--verbose")
    assert code == 1
    assert err.startswith("Traceback")
    code, out, err = rpc(url, "fail", "name=seven", "--json")
    error = json.loads(out)["error"]
    assert (error["class"], error["type"], error["message"]) == (
        "RemoteError",
        "builtins.KeyError",
        "'seven'",
    )
    assert "Traceback" in error["traceback"]
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["stop"], 6, "no method 'stop'"),
        (["start", "vm=many"], 2, "vm"),
        (["start", "machine=7"], 2, "machine"),
        (["start"], 2, "lacks vm"),
        (["start", "vm"], 2, "NAME=VALUE"),
        (["start", "vm=1", "vm=2"], 2, "twice"),
        (["start", "vm=1", "--fanout", "--server", "host-3"], 2, "--server"),
        (["start", "vm=1", "--cast", "--stream"], 2, "--cast and --stream exclude each other"),
        (["start", "vm=1", "--fanout", "--cast"], 2, "--cast and --fanout exclude each other"),
        (["start", "vm=1", "--codec", "foo"], 2, "codec 'foo': no such one is installed"),
        (["start", "vm=1", "--server", "host-4", "--timeout", "0.3"], 8, "host-4"),
    ],
)
def test_mistakes_are_one_line_and_a_code(
    url: str, arguments: list[str], code: int, text: str
) -> None:
    found, out, err = rpc(url, *arguments)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert err.startswith("cogwork: ")
    assert text in err
