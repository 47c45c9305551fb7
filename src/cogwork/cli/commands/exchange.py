"""`cogwork exchange`: exchanges and their bindings, through `$management`."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.management.group import reach_all
from cogwork.cli.management.listing import show_all
from cogwork.cli.management.manager import Manager
from cogwork.cli.management.reach import reach
from cogwork.cli.options.arguments import read_pairs
from cogwork.cli.options.certificates import certified
from cogwork.cli.terminal.tables import widened
from cogwork.cli.terminal.visible import visible
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.client import Message, Released
from cogwork.router.exchanges.addresses import exchange_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.client import Client

__all__ = ("exchange",)

TYPE = "exchange"

COLUMNS = {
    "exchange": "exchange",
    "kind": "type",
    "durable": "durable",
    "auto_delete": "auto-delete",
    "internal": "internal",
    "bindings": "bindings",
    "delivered": "delivered",
    "unroutable": "unroutable",
}

BINDING_COLUMNS = {
    "source": "source",
    "destination": "destination",
    "key": "key",
    "arguments": "arguments",
}


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def exchange() -> None:
    """Manage exchanges: list, declare, delete, bind, unbind, publish.

    NAME is an exchange's name, such as logs. A destination is an address: queue/NAME or
    exchange/NAME.
    """


@exchange.command("list")
@click.argument("url")
@click.option("--bindings", is_flag=True, help="List the bindings instead.")
@certified
@widened
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(url: str, bindings: bool, as_json: bool) -> None:
    """List the exchanges, or their bindings."""
    kind, columns = ("binding", BINDING_COLUMNS) if bindings else (TYPE, COLUMNS)
    show_all(url, kind, columns, as_json=as_json)


def argument_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a command take arguments of an exchange or a binding."""
    return click.option(
        "--argument",
        "arguments",
        multiple=True,
        metavar="K=V",
        callback=read_pairs,
        help=help_text,
    )


@exchange.command()
@click.argument("url")
@click.argument("name")
@click.option("--type", "kind", default="direct", show_default=True, help="Type of the exchange.")
@click.option("--transient", is_flag=True, help="Do not keep it over a restart.")
@click.option("--auto-delete", is_flag=True, help="Delete it with the last binding from it.")
@click.option("--internal", is_flag=True, help="Take messages from other exchanges only.")
@argument_option("Argument, such as alternate-exchange=NAME; repeatable.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def declare(
    url: str,
    name: str,
    *,
    kind: str,
    transient: bool,
    auto_delete: bool,
    internal: bool,
    arguments: dict[str, object],
    as_json: bool,
) -> None:
    """Declare an exchange. Does nothing if it exists with the same properties."""
    body = {
        "type": kind,
        "durable": not transient,
        "auto_delete": auto_delete,
        "internal": internal,
        "arguments": arguments,
    }
    is_new = _ask_all(url, "CREATE", name, body=body) == 201
    _tell(
        {"exchange": name, "type": kind, "is_new": is_new},
        f"{name} declared" if is_new else f"{name} was there with these properties",
        as_json=as_json,
    )


@exchange.command()
@click.argument("url")
@click.argument("name")
@click.option("--if-unused", is_flag=True, help="Fail if anything is bound to it.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def delete(url: str, name: str, if_unused: bool, as_json: bool) -> None:
    """Delete an exchange and its bindings."""
    _ask_all(url, "DELETE", name, body={"if_unused": if_unused})
    _tell({"exchange": name, "deleted": True}, f"{name} deleted", as_json=as_json)


def _binding_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the parameters of a binding."""
    for decorate in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        certified,
        argument_option("Argument, such as x-match=any; repeatable."),
        click.option("--key", default="", help="Binding key."),
        click.argument("destination"),
        click.argument("name"),
        click.argument("url"),
    ):
        command = decorate(command)
    return command


@exchange.command()
@_binding_command
def bind(
    url: str, name: str, destination: str, *, key: str, arguments: dict[str, object], as_json: bool
) -> None:
    """Bind a queue or an exchange to an exchange."""
    _change_binding(url, "BIND", (name, destination, key), arguments, as_json=as_json)


@exchange.command()
@_binding_command
def unbind(
    url: str, name: str, destination: str, *, key: str, arguments: dict[str, object], as_json: bool
) -> ExitCode:
    """Remove a binding. Exits with 1 if it is not there."""
    changed = _change_binding(url, "UNBIND", (name, destination, key), arguments, as_json=as_json)
    return ExitCode.OK if changed else ExitCode.ERROR


def _change_binding(
    url: str,
    operation: str,
    names: tuple[str, str, str],
    arguments: dict[str, object],
    *,
    as_json: bool,
) -> bool:
    name, destination, key = names
    body = {"destination": destination, "key": key, "arguments": arguments}
    changed = any(_asked_all(url, operation, name, body=body))
    done, not_done = {
        "BIND": ("bound to", "is bound to {name} so already"),
        "UNBIND": ("unbound from", "is not bound to {name} so"),
    }[operation]
    text = f"{destination} {done} {name}" if changed else f"{destination} {not_done}"
    told = {"source": name, "destination": destination, "key": key, "changed": changed}
    _tell(told, text.format(name=name), as_json=as_json)
    return changed


@exchange.command()
@click.argument("url")
@click.argument("name")
@click.argument("body")
@click.option("--key", default="", help="Routing key.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="K=V",
    callback=read_pairs,
    help="Header; repeatable.",
)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def publish(
    url: str, name: str, body: str, *, key: str, headers: dict[str, object], as_json: bool
) -> ExitCode:
    """Publish a message. Exits with 8 if no binding takes it."""

    async def work(client: Client) -> bool:
        message = Message(body, subject=key, properties=headers or None)
        try:
            await client.publish(exchange_address(name), message)
        except Released:
            return False
        return True

    is_routed = reach(url, work, force=True)
    if as_json:
        click.echo(json.dumps({"exchange": name, "key": key, "routed": is_routed}))
    elif is_routed:
        click.echo("published")
    if not is_routed:
        click.echo(visible(f"cogwork: no binding of {name} takes the message"), err=True)
    return ExitCode.OK if is_routed else ExitCode.NOT_ACCEPTED


def _ask_all(url: str, operation: str, name: str, *, body: Mapping[str, object]) -> int:
    """Have something done at each worker; return the highest status."""

    async def at_all(workers: dict[str, Client]) -> list[int]:
        replies = [
            await Manager(client).ask(operation, TYPE, exchange_address(name), body=body)
            for client in workers.values()
        ]
        return [int(str(each.properties["statusCode"])) for each in replies]

    return max(reach_all(url, at_all))


def _asked_all(url: str, operation: str, name: str, *, body: Mapping[str, object]) -> list[bool]:
    """Have something done at each worker; return which of them it changed."""

    async def work(client: Client) -> bool:
        reply: Any = await Manager(client).ask(operation, TYPE, exchange_address(name), body=body)
        return bool(reply.body["changed"])

    async def at_all(workers: dict[str, Client]) -> list[bool]:
        return await asyncio.gather(*map(work, workers.values()))

    return reach_all(url, at_all)


def _tell(told: Mapping[str, object], text: str, *, as_json: bool) -> None:
    click.echo(json.dumps(told, ensure_ascii=False) if as_json else visible(text))
