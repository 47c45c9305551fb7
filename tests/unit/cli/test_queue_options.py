"""Options of queues and streams, as people write them in a command line."""

from __future__ import annotations

import json

import click
import pytest

from cogwork.cli.commands import stream
from cogwork.cli.commands.queue import parse_options

TOO_DEEP = "[" * 5000
"""More arrays than Python reads in each other."""


def test_options_are_read_with_the_types_of_the_configuration() -> None:
    limits = ("maximum_length=5", "maximum_bytes=5000000")
    pairs = (*limits, "delay=false", "ttl_s=2.5", "dead_letter=queue/dead=1")
    assert parse_options(pairs) == {
        "maximum_length": 5,
        "maximum_bytes": 5_000_000,
        "delay": False,
        "ttl_s": 2.5,
        "dead_letter": "queue/dead=1",
    }
    assert json.dumps(parse_options(pairs))


@pytest.mark.parametrize("written", ["a,b,c", "a, b, c", '["a", "b", "c"]'])
def test_an_array_of_names_is_read_as_people_and_as_json_write_it(written: str) -> None:
    assert parse_options((f"replicas={written}",)) == {"replicas": ["a", "b", "c"]}


def test_what_is_too_deep_for_json_is_a_text() -> None:
    assert stream._pair(f"a={TOO_DEEP}") == ("a", TOO_DEEP)
    with pytest.raises(click.BadParameter, match="replicas takes an array"):
        parse_options((f"replicas={TOO_DEEP}",))
