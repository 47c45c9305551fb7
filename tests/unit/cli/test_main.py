"""The command line: what it loads, what it says, and what its exit codes mean."""

from __future__ import annotations

import errno
import functools
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from cogwork.amqp.errors import CogworkError, Condition, ProtocolError
from cogwork.cli import exit_codes, main
from cogwork.cli.__main__ import INTERRUPTED
from cogwork.cli.commands.serve import _make
from cogwork.cli.exit_codes import ExitCode, code_of, line_of
from cogwork.cli.lazy import LazyGroup
from cogwork.cli.main import COMMANDS, cogwork, run
from cogwork.config.errors import ConfigurationError
from cogwork.io.tls import TlsFilesError
from cogwork.io.websocket import WebSocketError

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
SYNOPSIS = re.sub(" +", " ", PAGE.split("```")[1])


COGWORK = (sys.executable, "-m", "cogwork.cli.main")


CERTIFICATES = {"--ca-file", "--cert-file", "--key-file", "--password-file", "--token-file"}
"""Options that the page names once, for every command that takes a URL."""


@functools.cache
def commands() -> dict[str, click.Command]:
    """List every command by its path."""
    return dict(_commands_of(cogwork))


def _commands_of(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands_of(command, f"{path}{name} ")
        else:
            yield path + name, command


def test_help_loads_nothing_but_click() -> None:
    probe = (
        "import sys; from cogwork.cli.main import run; run(['--help']); heavy = {'asyncio', 'ssl',"
        " 'msgspec', 'rich', 'cogwork.container', 'cogwork.client'} & set(sys.modules);"
        " sys.exit(' '.join(heavy) or None)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, check=False, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    for name, entry in COMMANDS.items():
        assert name in done.stdout
        assert entry.summary in done.stdout


@pytest.mark.parametrize("command", ["serve", "status"])
def test_a_command_starts_without_what_few_need_and_without_looking_for_garbage(
    command: str,
) -> None:
    probe = (
        "import gc, sys\nfrom cogwork.cli.main import run\nlooks = []\n"
        "gc.callbacks.append(lambda phase, _: looks.append(phase))\n"
        f"run([{command!r}, '--help'])\n"
        "few = {'wsproto', 'h11', 'pyarrow', 'uvloop'} & set(sys.modules)\n"
        "print(file=sys.stderr)\n"
        "print(sorted(few), gc.isenabled(), gc.get_freeze_count() > 0, len(looks) < 20,"
        " file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True, text=True)
    assert done.stderr.strip() == "[] True True True"


def test_summaries_are_what_the_commands_say_themselves() -> None:
    for name, entry in COMMANDS.items():
        command = cogwork.get_command(click.Context(cogwork), name)
        assert command is not None
        assert (command.help or "").startswith(entry.summary.removesuffix("."))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tomato"], "No such command 'tomato' (see `cogwork --help`)"),
        (["serv"], "No such command 'serv': did you mean serve? (see `cogwork --help`)"),
        (["publish", "amqp://h"], "No such command 'publish': `cogwork send` does that"),
        (["queue", "create", "amqp://h"], "'create': `cogwork queue declare` does that (see `cog"),
        (["stream", "read", "amqp://h", "s"], "`cogwork receive URL stream/NAME --from first`"),
        (["log", "verfy", "x"], "'verfy': did you mean verify? (see `cogwork log --help`)"),
        (["queue"], "Missing command (see `cogwork queue --help`)"),
        (["send", "amqp://h"], "Missing argument 'ADDRESS' (see `cogwork send --help`)"),
        (["send", "amqp://h", "a"], "expected either BODY or --file (see `cogwork send --help`)"),
        (["send", "amqp://h", "a", "b", "--file", "-"], "expected either BODY or --file"),
        (["send", "amqp://h", "a", "b", "--property", "k"], "'k' is not of the form K=V"),
        (
            ["send", "amqp://h", "a", "b", "--property", "k=1", "--property", "k=2"],
            "'k' is given twice",
        ),
        (["send", "amqp://h", "a", "b", "--ttl", "0"], "0.0 is not in the range 0<x<=4294967.295"),
        (["send", "amqp://h", "a", "b", "--ttl", "nan"], "'nan' is not a finite number"),
        (["receive", "amqp://h", "a", "--timeout", "nan"], "'nan' is not a finite number"),
        (["call", "amqp://h", "a", "b", "--timeout", "1e12"], "is not in the range 0<x<="),
        (["rpc", "amqp://h", "a", "b", "--timeout", "inf"], "is not in the range 0<x<="),
        (["rpc", "amqp://h", "a", ""], "'' is not a METHOD"),
        (["rpc", "amqp://h", "", "m"], "topic: a name without '/' is expected, not ''"),
        (["rpc", "amqp://h", "a", "m", "--server", ""], "server: a name without '/' is expected"),
        (["rpc", "amqp://h", "a", "m", "--exchange", "a/b"], "exchange: a name without '/' is"),
        (["send", "amqp://h", "", "x"], "'ADDRESS': the address \"\" is empty; expected a name"),
        (["send", "amqp://h", "//a", "x"], "'//a' begins with several /; expected one at most"),
        (["receive", "amqp://h", ""], "'ADDRESS': the address \"\" is empty; expected a name"),
        (["receive", "amqp://h", "/"], "'ADDRESS': the address \"/\" is empty; expected a name"),
        (["call", "amqp://h", "", "x"], "'ADDRESS': the address \"\" is empty; expected a name"),
        (["schema", "show", "amqp://h", ""], "'ADDRESS': the address \"\" is empty; expected a"),
        (["schema", "unregister", "amqp://h", ""], 'the address "" is empty; expected a name'),
        (["schema", "unregister", "amqp://h", "a.b*"], "* and # are wildcards as whole words only"),
        (["bench", "amqp://h", "--seconds", "nan"], "'nan' is not a finite number"),
        (
            ["receive", "amqp://h", "a", "--count", "1.5"],
            "'1.5' is not a whole number (see `cogwork",
        ),
        (["up", "three"], "Invalid value for 'N': 'three' is not a whole number (see `cogwork up"),
        (
            ["call", "amqp://h", "a", "b", "--timeout", "5s"],
            "'--timeout': '5s' is not a number (see",
        ),
        (["receive", "amqp://h", "a", "--count", "0"], "0 is not in the range x>=1"),
        (["receive", "amqp://h", "queue/q", "--from", "first"], "and 'queue/q' is not one"),
        (["receive", "amqp://h", "/topic/t", "--from", "5"], "--from needs a stream"),
        (["receive", "amqp://h", "sink/s", "--from", "today"], "--from needs a stream"),
        (["receive", "amqp://h", "a", "--from", "noon"], "2026-11-20T06:00) (see"),
        (
            ["queue", "declare", "amqp://h", "q", "--option", "ttl=5"],
            "unknown option 'ttl' (expected one of ttl_s,",
        ),
        (["queue", "declare", "amqp://h", ""], "'ADDRESS': the address \"\" is empty; expected"),
        (["queue", "move", "amqp://h", "q", ""], "'TARGET': the address \"\" is empty; expected a"),
        (["queue", "peek", "amqp://h", "q", "--count", str(2**63)], "is not in the range 1<=x<="),
        (["queue", "relocate", "amqp://h", "q", "--replicas", ","], "',' names no container"),
        (
            ["queue", "declare", "amqp://h", "q", "--option", "delay=maybe"],
            "delay takes true or false, not 'maybe'",
        ),
        (
            ["queue", "declare", "amqp://h", "q", "--option", "replicas=[1]"],
            "replicas takes an array, each item a string, not '[1]'",
        ),
        (["stream", "create", "amqp://h", ""], "'' is not a stream's name"),
        (["stream", "show", "amqp://h", ""], "'' is not a stream's name (expected NAME"),
        (["stream", "delete", "amqp://h", "/"], 'the address "/" is empty; expected a name'),
        (["stream", "trim", "amqp://h", "", "--before", "1"], "'' is not a stream's name"),
        (["stream", "move", "amqp://h", "", "--replicas", "a"], "'' is not a stream's name"),
        (["stream", "create", "amqp://h", "/"], "is not a stream's name"),
        (["stream", "create", "amqp://h", "stream/"], "is not a stream's name"),
        (["stream", "create", "amqp://h", "queue/x"], "'queue/x' is not a stream's name"),
        (["stream", "create", "amqp://h", "a.b.#"], "'a.b.#' is not a stream's name"),
        (["stream", "create", "amqp://h", "new\nline"], "is not a stream's name"),
        (["stream", "create", "amqp://h", "s", "--replicas", ""], "'' names no container"),
        (["stream", "create", "amqp://h", "s", "--retention-bytes", "0.5"], "is too small"),
        (["stream", "create", "amqp://h", "s", "--retention-bytes", "9999999TiB"], "is too large"),
        (
            ["stream", "create", "amqp://h", "s", "--retention-records", str(2**63)],
            "is not in the range 1<=x<=",
        ),
        (["stream", "trim", "amqp://h", "s", "--before", str(2**64)], "is not in the range 0<=x<="),
        (["engine", "list", "--file", "no-such-file"], "File 'no-such-file' does not exist"),
        (["up", "0"], "0 is not in the range 1<=x<=100"),
        (["up", "2", "--base-port", "65535"], "fewer than 2 free ports from 65535 on"),
        (["up", "2", "--topology", str(Path(__file__))], "expected two different ids, or one"),
        (["up", "2", "--topology", "/"], "cannot read '/': Is a directory (see `cogwork up --he"),
        (["mesh", "amqp://h", "--dot", "--svg"], "only one of --json, --dot and --svg"),
        (["link", "add", "amqp://h", "h:1", "--cost", "0"], "0 is not in the range 1<=x<=65535"),
        (["passwd", "a\nb"], "a name needs printable characters"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cogwork: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--listen", "foo", 'found "foo", expected HOST:PORT or unix://PATH'),
        ("--listen", "foo:99999", 'found "foo:99999", expected a port from 0 to 65535'),
        ("--id", "", 'found "", expected a name'),
        ("--data", "", 'found "", expected a directory'),
        ("--queue-patterns", "a*", 'found the word "a*", expected * and # as whole words only'),
    ],
)
def test_a_bad_option_of_serve_is_one_line_and_2(
    option: str, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", option, value]) == ExitCode.USAGE
    assert capsys.readouterr().err == f"cogwork: options: {option}: {message}\n"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_data_directory_that_cannot_be_made_is_called_so(
    tmp_path: Path, workers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    place = str(tmp_path / "file" / "below")
    assert run(["serve", "--data", place, "--workers", workers]) == ExitCode.ERROR
    told = f"cogwork: cannot use the data directory '{place}': Not a directory\n"
    assert capsys.readouterr().err == told


def test_a_data_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    place = tmp_path / "data"
    _make(str(place))
    assert place.stat().st_mode & 0o077 == 0
    _make(str(place))


def test_a_bad_link_is_one_line_and_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--link", "ann:secret@host"]) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert err.startswith(
        'cogwork: options: --link: found "...@host", expected HOST:PORT, '
        "amqp[s]://[USER:PASSWORD@]HOST[:PORT] or unix://PATH"
    )
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["bench", "rpc", "amqp://ann:secret@host", "amqp://ann:s@cret@host"], "amqp://...@host"),
        (["mesh", "status", "amqps://ann:secret@host:1/x"], "(amqps://...@host:1/x)"),
        (["serve", "--listen", "amqp://ann:secret@host:1"], '"amqp://...@host:1"'),
    ],
)
def test_no_complaint_shows_a_password(
    words: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert shown in err
    assert "cret" not in err


def test_a_topology_that_is_not_there_is_one_line_and_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["up", "2", "--topology", "no-such-file"]) == ExitCode.USAGE
    told = "Invalid value for --topology: unknown topology 'no-such-file' (expected one of"
    assert capsys.readouterr().err.startswith(f"cogwork: {told} line, ring, star, mesh")


def test_a_broken_configuration_is_one_line_and_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cogwork.toml"
    path.write_text("\n[limits]\nconnection = 5")
    assert run(["serve", "--config", str(path)]) == ExitCode.CONFIGURATION
    err = capsys.readouterr().err
    assert f"cogwork: {path}:3: unknown key 'limits.connection' (expected one of " in err
    assert err.count("\n") == 1


class _FailingGroup(LazyGroup):
    """Every command raises what the test wants."""

    error: BaseException

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        def fail() -> None:
            raise self.error

        return click.Command(cmd_name, callback=fail)


def run_failing(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    group = _FailingGroup()
    group.error = error
    monkeypatch.setattr(main, "cogwork", group)
    return run(["status"])


class _ConditionError(CogworkError):
    condition = Condition.NOT_FOUND


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (CogworkError("it broke\n  in two"), ExitCode.ERROR, "it broke in two"),
        (ConfigurationError("f", 1, "k", "a", "b"), ExitCode.CONFIGURATION, "f:1: k: found a"),
        (TlsFilesError("no.pem: gone"), ExitCode.CONFIGURATION, "no.pem: gone"),
        (WebSocketError("refused"), ExitCode.CONNECTION, "refused"),
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)"),
            ExitCode.CONNECTION,
            "Connect call failed ('127.0.0.1', 1)",
        ),
        (OSError(errno.EADDRINUSE, "address in use"), ExitCode.CONNECTION, "address in use"),
        (OSError("Multiple exceptions"), ExitCode.CONNECTION, "Multiple exceptions"),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), ExitCode.ERROR, "x: No such file"),
        (TimeoutError(), ExitCode.TIMEOUT, "TimeoutError"),
        (_ConditionError("queue/a"), ExitCode.NOT_FOUND, "queue/a"),
        (
            ProtocolError(Condition.UNAUTHORIZED_ACCESS, "no"),
            ExitCode.AUTHENTICATION,
            "amqp:unauthorized-access: no",
        ),
        (ExceptionGroup("tasks", [TimeoutError("late")]), ExitCode.TIMEOUT, "late"),
    ],
)
def test_an_error_is_one_line_and_its_code(
    error: Exception,
    code: ExitCode,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert code_of(error) is code
    assert line in line_of(error)
    assert run_failing(error, monkeypatch) == code
    err = capsys.readouterr().err
    assert line in err
    assert err.startswith("cogwork: ")
    assert err.count("\n") == 1


def test_what_others_say_does_nothing_to_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_failing(CogworkError("grün \x1b[2Jgone\x07"), monkeypatch)
    assert capsys.readouterr().err == "cogwork: grün \\x1b[2Jgone\\x07\n"


def test_ctrl_c_is_130_and_silent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_failing(KeyboardInterrupt(), monkeypatch) == ExitCode.INTERRUPTED
    assert "Traceback" not in capsys.readouterr().err


INTERRUPTED_IMPORT = """
import sys

class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from cogwork.cli.__main__ import main
main()
"""


def test_ctrl_c_is_silent_while_the_command_line_is_loaded() -> None:
    command = [sys.executable, "-c", INTERRUPTED_IMPORT]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.INTERRUPTED, b"", b"")
    assert ExitCode.INTERRUPTED == INTERRUPTED


def test_it_is_a_program_of_its_own() -> None:
    command = [sys.executable, "-m", "cogwork.cli", "--version"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, b"cogwork", b"")


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        run_failing(ZeroDivisionError(), monkeypatch)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["engine", "list"], ["engine", "list", "--json"]]
)
def test_a_reader_that_left_is_141_and_silent(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", f"from cogwork.cli.main import main; main({arguments})"],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (ExitCode.BROKEN_PIPE, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_output_that_has_no_room_is_1_and_said() -> None:
    command = f"{shlex.join(COGWORK)} engine list --json >/dev/full"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (1, b"cogwork: No space left on device\n")


def test_no_output_at_all_is_no_fault() -> None:
    command = f"{shlex.join(COGWORK)} engine list --json >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_no_input_at_all_is_an_empty_one() -> None:
    command = f"{shlex.join(COGWORK)} send amqp://127.0.0.1:1 queue/a --file - <&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, check=False)
    refused = b"cogwork: amqp://127.0.0.1:1: Connection refused\n"
    assert (done.returncode, done.stderr) == (ExitCode.CONNECTION, refused)


@pytest.mark.parametrize("name", exit_codes.OF_TYPE)
def test_types_with_a_code_are_where_the_table_says(name: str) -> None:
    found = pkgutil.resolve_name(name)
    assert f"{found.__module__}.{found.__qualname__}" == name


def test_every_exit_code_is_in_the_documentation() -> None:
    rows = re.findall(r"^\| (\d+) \| ([\w-]+) \|", PAGE, re.MULTILINE)
    names = [code.name.lower().replace("_", "-") for code in ExitCode]
    assert rows == [(str(code.value), name) for code, name in zip(ExitCode, names, strict=True)]


# `bench` has many more options than the page names, and the page says so.
@pytest.mark.parametrize("path", [path for path in commands() if path != "bench"])
def test_the_synopsis_has_every_option_and_no_other(path: str) -> None:
    section = SYNOPSIS.partition(f"cogwork {path} ")[2].partition("cogwork ")[0]
    parameters = commands()[path].params
    options = [each for each in parameters if isinstance(each, click.Option) and not each.hidden]
    names = [{*each.opts, *each.secondary_opts} for each in options]
    shown = set(re.findall(r"--[\w-]+", section))
    assert shown <= set().union(*names)
    assert [each for each in names if not each & (shown | CERTIFICATES)] == []
    arguments = [each for each in parameters if isinstance(each, click.Argument)]
    words = [each.metavar or str(each.name).upper() for each in arguments]
    assert [word for word in words if word not in section] == []


@pytest.mark.parametrize("path", commands())
def test_every_option_says_what_it_is_for(path: str) -> None:
    options = [each for each in commands()[path].params if isinstance(each, click.Option)]
    assert [each.opts for each in options if not each.help] == []


def test_every_command_is_in_the_documentation() -> None:
    assert [path for path in commands() if f"cogwork {path} " not in SYNOPSIS] == []
