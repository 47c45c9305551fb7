"""`cogwork policy`: what queues and exchanges of some names have, through `$management`."""

from __future__ import annotations

import json

import click

from cogwork.cli.management.declared import Declared
from cogwork.cli.options.arguments import read_pairs
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.single_url import single_url
from cogwork.cli.unknown_commands import HelpfulGroup

__all__ = ("TYPE", "policy")

TYPE = "org.cogwork.policy"

COLUMNS = {
    "name": "policy",
    "pattern": "pattern",
    "apply_to": "applies to",
    "priority": "priority",
    "definition": "definition",
    "origin": "origin",
}

DECLARED = Declared(TYPE, "policies", COLUMNS)

APPLY_TO = ("all", "queues", "classic_queues", "quorum_queues", "exchanges")


def _definition(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, object]:
    """Read a JSON object, as RabbitMQ's command takes it, or each `K=V`."""
    if len(given) != 1 or not given[0].lstrip().startswith("{"):
        return read_pairs(context, parameter, given)
    try:
        read = json.loads(given[0])
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{given[0]!r:.200} is no JSON: {error}") from None
    assert isinstance(read, dict)
    return read


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def policy() -> None:
    """Manage policies of queues and exchanges: set, clear, list.

    URL is any container of a cluster, with the virtual host in its path. A policy holds in all of
    its containers, at once, for what is there and for what comes.
    """


@policy.command("set")
@click.argument("url", callback=single_url)
@click.argument("name")
@click.argument("pattern")
@click.argument("definition", nargs=-1, required=True, metavar="K=V...", callback=_definition)
@click.option(
    "--apply-to",
    type=click.Choice(APPLY_TO),
    default="all",
    show_default=True,
    help="What it holds for.",
)
@click.option(
    "--priority",
    type=int,
    default=0,
    show_default=True,
    help="Of several that fit, the highest holds.",
)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print the policy as one JSON object.")
def set_(
    url: str,
    name: str,
    pattern: str,
    definition: dict[str, object],
    *,
    apply_to: str,
    priority: int,
    as_json: bool,
) -> None:
    """Set a policy for the names that match PATTERN.

    PATTERN is a regular expression that is found in the name of a queue or an exchange: ^logs for
    those that begin so. The keys are RabbitMQ's: message-ttl=60000. K=V may be one JSON object.
    """
    body = {**definition, "pattern": pattern, "apply_to": apply_to, "priority": priority}
    DECLARED.tell(DECLARED.ask(url, "UPDATE", name, body), "set", as_json=as_json)


@policy.command("clear")
@click.argument("url", callback=single_url)
@click.argument("name")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def clear(url: str, name: str, as_json: bool) -> None:
    """Clear a policy. What was declared of queues and exchanges holds alone again."""
    DECLARED.remove(url, name, as_json=as_json)


DECLARED.add_list(policy, "List the policies of a virtual host.")
