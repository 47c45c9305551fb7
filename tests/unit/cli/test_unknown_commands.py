"""What is said of words that are commands elsewhere."""

from __future__ import annotations

import re

import click
import pytest

from cogwork.cli.main import cogwork
from cogwork.cli.unknown_commands import OTHER_WORDS


def group_of(path: str) -> click.Group:
    """Find a group by its path, `cogwork queue`."""
    found: click.Command = cogwork
    for word in path.split()[1:]:
        assert isinstance(found, click.Group)
        below = found.get_command(click.Context(found), word)
        assert below is not None
        found = below
    assert isinstance(found, click.Group)
    return found


def named_in(text: str) -> list[list[str]]:
    """List the commands of a text, as far as they are words of small letters."""
    shown = (re.match(r"cogwork((?: [a-z]+)*)", line) for line in re.findall(r"`([^`]+)`", text))
    return [each[1].split() for each in shown if each is not None]


@pytest.mark.parametrize("path", OTHER_WORDS)
def test_what_is_advised_is_there_and_what_is_there_is_not_corrected(path: str) -> None:
    group = group_of(path)
    names = set(group.list_commands(click.Context(group)))
    for words, text in OTHER_WORDS[path].items():
        assert names.isdisjoint(words.split())
        assert named_in(text) or "SIGTERM" in text
        for command in named_in(text):
            below = group_of("cogwork")
            for word in command:
                found = below.get_command(click.Context(below), word)
                assert found is not None, text
                below = found if isinstance(found, click.Group) else below


@pytest.mark.parametrize("path", OTHER_WORDS)
def test_no_word_has_two_meanings(path: str) -> None:
    words = [word for several in OTHER_WORDS[path] for word in several.split()]
    assert len(words) == len(set(words))
