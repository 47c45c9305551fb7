"""Lines of the shell: what they say on a command line, and how they are completed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from cogwork.cli.main import cogwork
from cogwork.cli.shell.command_lines import command_line_of, split
from cogwork.cli.shell.completion import ShellCompleter
from cogwork.cli.shell.session import OWN, Session

if TYPE_CHECKING:
    from collections.abc import Sequence

URL = "amqps://box"
GIVEN = (URL, "--ca-file", "ca.pem", "--token-file", "token")
NAMES = {"queue": ["queue/jobs", "queue/two words"], "stream": ["stream/orders"], "address": ["t"]}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("status", f"status --ca-file ca.pem --token-file token {URL}"),
        ("queue list --json", f"queue list --ca-file ca.pem --token-file token {URL} --json"),
        ("queue list amqp://other", "queue list amqp://other"),
        ("send queue/x 'a b'", f"send --ca-file ca.pem --token-file token {URL} queue/x 'a b'"),
        ("engine list", "engine list"),
        ("queue", "queue"),
        ("nothing of the kind", "nothing of the kind"),
        ("status  # how it is", f"status --ca-file ca.pem --token-file token {URL}"),
    ],
)
def test_the_url_is_put_where_a_command_has_it(line: str, expected: str) -> None:
    assert command_line_of(cogwork, split(line), GIVEN) == split(expected)


def test_every_command_that_has_a_url_gets_it() -> None:
    count = 0

    def check(command: click.Command, path: list[str]) -> None:
        nonlocal count
        context = click.Context(command)
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                check(below, [*path, name])
        elif any(each.name == "url" for each in command.params):
            count += 1
            assert URL in command_line_of(cogwork, path, GIVEN), path

    check(cogwork, [])
    assert count > 40


def completed(line: str) -> list[str]:
    completer = ShellCompleter(cogwork, OWN, lambda kind: NAMES.get(kind, []))
    found = completer.get_completions(Document(line), CompleteEvent())
    return [f"{line[: len(line) + each.start_position]}{each.text}" for each in found]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("que", ["queue"]),
        ("wat", ["watch"]),
        ("watch que", ["watch queue"]),
        ("queue pe", ["queue peek"]),
        ("queue peek ", ["queue peek queue/jobs", "queue peek 'queue/two words'"]),
        ("queue peek queue/j", ["queue peek queue/jobs"]),
        ("queue peek queue/jobs ", []),
        ("queue peek --count 3 queue/j", ["queue peek --count 3 queue/jobs"]),
        ("queue peek --js", ["queue peek --json"]),
        ("stream show ", ["stream show stream/orders"]),
        ("queue declare queue/x --durability r", ["queue declare queue/x --durability replicated"]),
        ("send ", ["send queue/jobs", "send 'queue/two words'", "send stream/orders", "send t"]),
        ("send 'not closed ", []),
        ("nothing ", []),
    ],
)
def test_words_are_completed(line: str, expected: list[str]) -> None:
    assert completed(line) == expected


def test_a_line_that_is_wrong_is_told_and_the_next_one_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran: list[Sequence[str]] = []

    def run(words: Sequence[str]) -> int:
        ran.append(words)
        return 7

    session = Session(cogwork, run, (URL,))
    session.take("send 'x")
    assert (session.code, session.is_over) == (2, False)
    assert 'No closing quotation in "send \'x"' in capsys.readouterr().err
    session.take("watch 5")
    assert "watch needs a command (expected watch [SECONDS] COMMAND)" in capsys.readouterr().err
    session.take("")
    session.take("watch 0 status")
    assert (ran, session.code) == ([["status", URL]], 7), "it is not repeated once it has failed"
    session.take("exit")
    assert session.is_over
