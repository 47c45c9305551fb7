"""The command `cogwork`: finds the sub-command, runs it, and turns errors into a line and a code.

Theory of operation. A sub-command's module is imported when that sub-command runs, so `cogwork
--help` and a shell's completion load nothing but click. Whatever a command raises ends here, in
one place: what can be expected to go wrong becomes one line on stderr and an exit code, a mistake
of ours keeps its traceback.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import click

from cogwork import __version__
from cogwork.cli.exit_codes import ExitCode, code_of, innermost, line_of
from cogwork.cli.lazy import Entry, LazyGroup, ReaderLeftError
from cogwork.cli.terminal.escapes import escape_what_cannot_be_written
from cogwork.cli.terminal.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ("cogwork", "main")

LOGIN = re.compile(r"://(?!\[USER:PASSWORD@\])[^\s'\"]*@")
"""What stands before the host in a URL: logs of other programs keep what is said on stderr.

Where a text says how a URL is written, nothing is to be hidden.
"""

COMMANDS = {
    "serve": Entry("cogwork.cli.commands.serve", "Run a container."),
    "init": Entry("cogwork.cli.commands.init", "Write a configuration with comments."),
    "up": Entry("cogwork.cli.commands.up", "Run a cluster of linked containers on this machine."),
    "send": Entry("cogwork.cli.commands.send", "Send messages to an address."),
    "receive": Entry(
        "cogwork.cli.commands.receive", "Receive messages from an address and print them."
    ),
    "call": Entry("cogwork.cli.commands.call", "Send a request and print the reply."),
    "rpc": Entry("cogwork.cli.commands.rpc", "Call a method of a service."),
    "status": Entry(
        "cogwork.cli.commands.status", "Show connections, addresses, queues and streams."
    ),
    "top": Entry("cogwork.cli.commands.top", "Watch a container: load, rates, what is busiest."),
    "connection": Entry(
        "cogwork.cli.commands.connection", "Manage the connections of a container: list, close."
    ),
    "permission": Entry(
        "cogwork.cli.commands.permission", "Manage permissions of a cluster: add, remove, list."
    ),
    "vhost": Entry("cogwork.cli.commands.vhost", "Manage virtual hosts: add, remove, list."),
    "policy": Entry(
        "cogwork.cli.commands.policy",
        "Manage policies of queues and exchanges: set, clear, list.",
    ),
    "limit": Entry(
        "cogwork.cli.commands.limit", "Manage the limits of a cluster: set, remove, list."
    ),
    "user": Entry("cogwork.cli.commands.user", "Manage users: add, set, remove, list, disconnect."),
    "queue": Entry(
        "cogwork.cli.commands.queue", "Manage queues: list, declare, peek, purge, move, delete."
    ),
    "exchange": Entry(
        "cogwork.cli.commands.exchange",
        "Manage exchanges: list, declare, delete, bind, unbind, publish.",
    ),
    "stream": Entry(
        "cogwork.cli.commands.stream", "Manage streams: create, list, show, move, trim, delete."
    ),
    "schema": Entry(
        "cogwork.cli.commands.schema",
        "Manage the schemas of addresses: register, list, show, check.",
    ),
    "pipeline": Entry(
        "cogwork.cli.commands.pipeline", "Run Spark jobs over streams, and the built-in pipelines."
    ),
    "link": Entry(
        "cogwork.cli.commands.link", "Manage links to other containers: add, remove, list."
    ),
    "shell": Entry(
        "cogwork.cli.commands.shell", "Run commands at one container without writing its URL."
    ),
    "mesh": Entry("cogwork.cli.commands.mesh", "List containers, links and routes."),
    "leave": Entry(
        "cogwork.cli.commands.leave", "Remove a container from the mesh permanently and stop it."
    ),
    "cluster": Entry(
        "cogwork.cli.commands.cluster",
        "Show and recover a cluster, and change its members.",
    ),
    "backup": Entry(
        "cogwork.cli.commands.backup", "Back up a running container, and verify backups."
    ),
    "restore": Entry("cogwork.cli.commands.restore", "Make a data directory of a backup."),
    "metrics": Entry(
        "cogwork.cli.commands.metrics", "Serve metrics for Prometheus, and health checks."
    ),
    "console": Entry("cogwork.console.command", "Serve a web console for the browser."),
    "migrate": Entry(
        "cogwork.cli.commands.migrate", "Take over the definitions of another broker."
    ),
    "bridge": Entry("cogwork.cli.commands.bridge", "Move messages between brokers, at least once."),
    "doctor": Entry(
        "cogwork.cli.commands.doctor", "Check containers and a configuration, and advise."
    ),
    "log": Entry("cogwork.cli.commands.log", "Inspect, verify and dump log files."),
    "bench": Entry("cogwork.cli.commands.bench", "Measure the broker at URL."),
    "engine": Entry("cogwork.cli.commands.engine", "List the stream engines."),
    "completion": Entry(
        "cogwork.cli.commands.completion", "Print the completion script of a shell."
    ),
    "passwd": Entry("cogwork.cli.commands.passwd", "Hash a password for the configuration file."),
}
"""Each command is the function of its own name in its module."""


@click.group(cls=LazyGroup, entries=COMMANDS, invoke_without_command=True)
@click.version_option(__version__, prog_name="cogwork", message="%(prog)s %(version)s")
@click.pass_context
def cogwork(ctx: click.Context) -> None:
    """A distributed message broker that speaks AMQP 1.0 and AMQP 0-9-1."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line and exits with its code; `docs/cli.md` lists the codes.

    Args:
        arguments: Without the program's name; None takes the process's own.
    """
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Args:
        arguments: Without the program's name; None takes the process's own.
    """
    if sys.stdin is None:  # as after `<&-`: there is nothing to be read
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # for as long as this runs
    escape_what_cannot_be_written(sys.stdout)
    try:
        code = cogwork.main(arguments, prog_name="cogwork", standalone_mode=False)
        if sys.stdout is not None:  # as after `>&-`
            sys.stdout.flush()
    except click.ClickException as error:
        return _refuse_octets(error, arguments) or _refuse(error)
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except (ReaderLeftError, BrokenPipeError):
        _abandon_stdout()
        return ExitCode.BROKEN_PIPE
    except Exception as error:
        if refusal := _refuse_octets(error, arguments):
            return refusal
        code = code_of(error)
        if code is None:
            raise
        _complain(line_of(error))
    return code if isinstance(code, int) else ExitCode.OK


def _refuse_octets(error: Exception, arguments: Sequence[str] | None) -> ExitCode | None:
    """Name the argument that is no text where something failed for that.

    As a file's name it would do, so what it is for has to say first that it does not.
    """
    if not any(isinstance(each, UnicodeError) for each in _causes(innermost(error))):
        return None
    for number, text in enumerate(sys.argv[1:] if arguments is None else arguments, 1):
        octets = os.fsencode(text)
        try:
            octets.decode()
        except UnicodeDecodeError:
            _complain(f"argument {number}: found {str(octets)[1:]}, expected a text in UTF-8")
            return ExitCode.USAGE
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Go from an error to what has led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _refuse(error: click.ClickException) -> ExitCode:
    """Return what is wrong with the command line, in one line where click takes four."""
    if not isinstance(error, click.UsageError):
        _complain(error.format_message())
        return ExitCode.ERROR
    path = error.ctx.command_path if error.ctx is not None else "cogwork"
    message = " ".join(error.format_message().split()).removesuffix(".")
    _complain(f"{message} (see `{path} --help`)")
    return ExitCode.USAGE


def _complain(message: str) -> None:
    """Say what is wrong in one line, which shows no user and password of a URL in it."""
    shown = LOGIN.sub("://...@", " ".join(message.split()))
    click.echo(f"cogwork: {visible(shown)}", err=True)


def _abandon_stdout() -> None:
    """Keep the interpreter from failing once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
