"""What `--help` shows, of each command."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from cogwork.cli.commands import bench_engines, bench_switching
from cogwork.cli.main import cogwork

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH = 80
"""Of a terminal that nobody has made wider."""

OTHERS = (bench_engines.engines, bench_switching.isr, bench_switching.xsr)

BY_HAND = re.compile(r"\[|\bwithout( it)?\b[.;]|\bif not given\b|\(yes\)|[;.] \d+\.$")
"""How a default may look that click has not written."""


def groups(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Find all groups, by the words that they are called by."""
    yield path
    for name, command in below(group):
        if isinstance(command, click.Group):
            yield from groups(command, (*path, name))


def below(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield name, command


def commands(group: click.Group) -> Iterator[click.Command]:
    for _, command in below(group):
        yield command
        if isinstance(command, click.Group):
            yield from commands(command)


@pytest.mark.parametrize("path", list(groups(cogwork)), ids=" ".join)
def test_no_sentence_is_cut(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(cogwork, [*path, "--help"], terminal_width=WIDTH)
    assert shown.exit_code == 0
    assert "..." not in shown.output.partition("Commands:")[2]


def test_commands_take_the_parameters_that_they_declare() -> None:
    for command in (*commands(cogwork), *OTHERS):
        if command.callback is not None and not isinstance(command, click.Group):
            given = {each.name: None for each in command.params if each.expose_value}
            inspect.signature(command.callback).bind(**given)


def test_defaults_are_told_in_one_way() -> None:
    texts = {
        f"{command.name} {parameter.opts[0]}": parameter.help or ""
        for command in (*commands(cogwork), *OTHERS)
        for parameter in command.params
        if isinstance(parameter, click.Option)
    }
    said = {name: text for name, text in texts.items() if BY_HAND.search(text)}
    assert {name for name in said if not re.search(r"\[\[\w+\]\]|local\[2\]", said[name])} == set()


@pytest.mark.parametrize(
    ("words", "option", "default"),
    [
        ("serve", "--listen", "127.0.0.1:5672"),
        ("serve", "--workers", "1"),
        ("serve", "--arrow", "0"),
        ("serve", "--data", "nowhere"),
        ("queue declare", "--durability", "as [[address]] says, or auto"),
        ("stream create", "--engine", "orb, or raft with --replicas"),
        ("send", "--count", "once, or all lines"),
    ],
)
def test_what_holds_without_an_option_is_told(words: str, option: str, default: str) -> None:
    shown = CliRunner().invoke(cogwork, [*words.split(), "--help"], terminal_width=WIDTH).output
    about = " ".join(shown.partition(f"\n  {option} ")[2].partition("\n  --")[0].split())
    assert f"[default: ({default})" in about


def test_all_places_in_a_stream_are_named() -> None:
    shown = CliRunner().invoke(cogwork, ["receive", "--help"], terminal_width=WIDTH)
    for place in ("first", "last", "next", "snapshot", "today"):
        assert place in shown.output


def test_whatever_connects_to_a_container_takes_certificates() -> None:
    wanted = {"--ca-file", "--cert-file", "--key-file"}
    lacking = {
        command.name
        for command in commands(cogwork)
        if any(each.name == "url" for each in command.params)
        and not wanted <= {name for each in command.params for name in each.opts}
    }
    # Loads of one know authorities alone; whoever browses the other would have its certificate.
    assert lacking == {"bench", "console"}


@pytest.mark.parametrize("path", list(groups(cogwork)), ids=" ".join)
def test_numbers_are_shown_as_the_pages_show_them(path: tuple[str, ...]) -> None:
    group: click.Command = cogwork
    for word in path:
        assert isinstance(group, click.Group)
        group = dict(below(group))[word]
    assert isinstance(group, click.Group)
    for name, _ in below(group):
        shown = CliRunner().invoke(cogwork, [*path, name, "--help"], terminal_width=WIDTH).output
        assert "RANGE" not in shown
