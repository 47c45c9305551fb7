"""`cogwork rpc`: calls a method of a service by its name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.exit_codes import line_of
from cogwork.cli.management.reach import reach
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.quantities import DURATION
from cogwork.cli.terminal.rendering import jsonable
from cogwork.client.call_options import RpcOptions
from cogwork.plugins import PluginError
from cogwork.rpc.codec import UnknownCodecError, codec_named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.client import Client

__all__ = ("rpc",)

TIMEOUT_S = 10.0
"""As long as a person waits before wondering whether anyone is there."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of whom.

    Attributes:
        url: Where to connect.
        topic: Whose servers are meant.
        method: What is to be run.
        arguments: With what.
        way: `call`, `cast`, `fanout` or `stream`.
        server: The one server that is meant; None for any.
        exchange: The second level of the address; None for the usual one.
        codec: What the arguments are written in; None for the usual one.
        timeout_s: How long to wait.
        as_json: Whether to print for programs.
        verbose: Whether to print the traceback of what the method raised.
    """

    url: str
    topic: str
    method: str
    arguments: dict[str, Any]
    way: str
    server: str | None
    exchange: str | None
    codec: str | None
    timeout_s: float
    as_json: bool
    verbose: bool

    def demand_address(self) -> None:
        """See that there can be somebody of these names.

        Raises:
            ValueError: One of them is no level of an address.
        """
        addresses = RpcOptions()
        addresses.every(self.topic, self.exchange)
        if self.server is not None:
            addresses.server(self.topic, self.server, self.exchange)

    def options(self) -> dict[str, Any]:
        """Return what calls, casts, fanouts and streams have in common."""
        named = {} if self.way == "fanout" else {"server": self.server}
        return {
            **named,
            "exchange": self.exchange,
            "codec": self.codec,
            "timeout_s": self.timeout_s,
            "arguments": self.arguments,
        }

    async def ask(self, client: Client) -> None:
        """Ask, and print what comes back."""
        if self.way == "cast":
            await client.cast(self.topic, self.method, **self.options())
        elif self.way == "fanout":
            await client.fanout(self.topic, self.method, **self.options())
        elif self.way == "stream":
            async for part in client.call_stream(self.topic, self.method, **self.options()):
                self._tell("part", part)
        else:
            self._tell("result", await client.call(self.topic, self.method, **self.options()))

    def _tell(self, name: str, value: object) -> None:
        written = jsonable(value)
        if self.as_json:
            click.echo(json.dumps({name: written}, ensure_ascii=False))
        elif isinstance(written, str):
            click.echo(written)
        else:
            click.echo(json.dumps(written, ensure_ascii=False))

    def explain(self, error: Exception) -> None:
        """Print what a script, or a person who asked for more, wants to know of a failure."""
        traceback_text = str(getattr(error, "traceback_text", ""))
        if self.as_json:
            known = {
                "class": type(error).__name__,
                "text": line_of(error),
                "condition": getattr(error, "condition", None),
                "type": getattr(error, "type", None),
                "message": getattr(error, "message", None),
                "traceback": traceback_text,
            }
            told = {key: str(value) for key, value in known.items() if value}
            click.echo(json.dumps({"error": told}, ensure_ascii=False))
        if self.verbose and traceback_text:
            click.echo(traceback_text.rstrip("\n"), err=True)


def parse_arguments(
    _ctx: click.Context, _parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, Any]:
    """Read each `NAME=VALUE`; a value is JSON, or else a text."""
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{pair!r} is not of the form NAME=VALUE")
        if name in arguments:
            raise click.BadParameter(f"{name!r} is given twice (expected each name once)")
        arguments[name] = _value(text)
    return arguments


def _value(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text


def _refuse_constant(name: str) -> object:
    """NaN and the infinities are not JSON: a text is meant."""
    raise ValueError(name)


def chosen(ways: Iterable[str], server: str | None) -> str:
    """Return the way that is meant: to call, where none is named.

    Raises:
        click.UsageError: Two are named, or a server where all are meant.
    """
    named = list(ways)
    if len(named) > 1:
        options = " and ".join(f"--{way}" for way in named)
        raise click.UsageError(f"{options} exclude each other")
    if named == ["fanout"] and server is not None:
        raise click.UsageError("--fanout calls all servers: it excludes --server")
    return named[0] if named else "call"


def a_codec(_ctx: click.Context, _parameter: click.Parameter, name: str | None) -> str | None:
    """See that there is a codec of that name here; the service may lack it nevertheless."""
    if name is not None:
        try:
            codec_named(name)
        except (PluginError, UnknownCodecError) as error:
            raise click.BadParameter(str(error)) from error
    return name


@click.command()
@click.argument("url")
@click.argument("topic")
@click.argument("method")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...", callback=parse_arguments)
@click.option("--server", metavar="S", help="Call this server only.")
@click.option("--cast", "is_cast", is_flag=True, help="Do not wait for a result.")
@click.option(
    "--fanout", "is_fanout", is_flag=True, help="Call all servers without waiting for results."
)
@click.option(
    "--stream",
    "is_stream",
    is_flag=True,
    help="Print the parts of a streamed reply as they arrive.",
)
@click.option("--exchange", metavar="E", show_default="rpc", help="Second level of the address.")
@click.option(
    "--codec",
    metavar="C",
    callback=a_codec,
    show_default="amqp",
    help="Encoding of the arguments.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=DURATION,
    default=TIMEOUT_S,
    show_default=True,
    metavar="S",
    help="Seconds to wait; with --stream, the longest silence.",
)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print JSON objects, for errors too.")
@click.option("--verbose", is_flag=True, help="Print the traceback of the method's exception.")
def rpc(
    *,
    is_cast: bool,
    is_fanout: bool,
    is_stream: bool,
    server: str | None,
    **options: Any,
) -> None:
    """Call a method of a service.

    TOPIC and METHOD name it; a VALUE is parsed as JSON, or else taken as text. Exits with 6 if
    there is no such method, with 7 if no reply arrives in time, and with 8 if nobody serves the
    topic.
    """
    ways = {"cast": is_cast, "fanout": is_fanout, "stream": is_stream}
    if not options["method"]:
        raise click.UsageError("'' is not a METHOD (expected a name)")
    way = chosen((name for name, is_meant in ways.items() if is_meant), server)
    asked = Asked(way=way, server=server, **options)
    try:
        asked.demand_address()
        reach(asked.url, asked.ask)
    except ValueError as error:  # a topic, a server or an exchange that is no level of an address
        raise click.UsageError(str(error)) from error
    except Exception as error:
        asked.explain(error)
        raise
