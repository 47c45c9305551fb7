"""Whatever command line a page shows is one that there is."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from cogwork.cli.commands import bench_engines, bench_switching
from cogwork.cli.main import cogwork

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    [*ROOT.glob("*.md")]
    + [page for folder in ("docs", "examples") for page in (ROOT / folder).rglob("*.md")]
)
SHOWN = re.compile(r"`(cogwork [a-z][^`]+)`|^(?:\$ | {4})?(cogwork [a-z].*)", re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
BENCHES = {
    "engines": bench_engines.engines,
    "isr": bench_switching.isr,
    "xsr": bench_switching.xsr,
}


def command_of(words: list[str]) -> click.Command:
    """Find the command that a line's words name, as far as they name any."""
    found: click.Command = cogwork
    for word in words:
        if found.name == "bench":
            return BENCHES.get(word, found)
        if not isinstance(found, click.Group):
            break
        below = found.get_command(click.Context(found), word.rstrip(","))
        if below is None:
            assert not re.fullmatch(r"[a-z]+", word), f"there is no {word!r}"
            break
        found = below
    return found


def is_known(line: str) -> bool:
    """Return whether a command and its options are there."""
    words = line.partition("#")[0].split()[1:]
    command = command_of(words)
    known = {"--help"} | {
        name for each in command.params for name in (*each.opts, *each.secondary_opts)
    }
    said = line if "[" in line else line.partition(" | ")[0]
    return set(OPTION.findall(said)) <= known


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_on_a_page_are_there(page: Path) -> None:
    shown = [inline or line for inline, line in SHOWN.findall(page.read_text())]
    assert [line for line in shown if not is_known(line)] == []


@pytest.mark.parametrize("line", ["cogwork stream read URL", "cogwork sent URL a b"])
def test_a_command_that_is_gone_would_be_found(line: str) -> None:
    with pytest.raises(AssertionError, match=r"there is no '(read|sent)'"):
        is_known(line)


def test_an_option_that_is_gone_would_be_found() -> None:
    assert is_known("cogwork bench isr --brokers 3")
    assert not is_known("cogwork bench --brokers 3")
    assert not is_known("cogwork receive URL a --form first")
