"""What can be done to users, permissions, virtual hosts, limits, policies and links."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.config.password_hash import hash_password
from cogwork.console.actions.action import (
    Action,
    Done,
    Field,
    flag_of,
    number_of,
    pairs_of,
    words_of,
)
from cogwork.console.errors import WrongForm
from cogwork.container.cluster.settings import permission_name
from cogwork.sasl.verifier import HASHES, make_verifier

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from cogwork.console.session import Session

__all__ = ("ADMINISTRATION_ACTIONS",)

APPLY_TO = ("all", "queues", "classic_queues", "quorum_queues", "exchanges")
RIGHTS = ("send", "receive", "manage")


def _credentials(password: str) -> dict[str, object]:
    """Hash a password: the container never hears it. Takes a second."""
    verifiers = [str(make_verifier(each, password)) for each in HASHES]
    return {"password_hash": hash_password(password), "scram_verifiers": verifiers}


async def _hashed(fields: Mapping[str, str]) -> dict[str, object]:
    password = fields.get("password", "")
    if "\0" in password:
        raise WrongForm("Password: found a NUL character")
    return await asyncio.to_thread(_credentials, password) if password else {}


async def _add_user(session: Session, fields: Mapping[str, str]) -> Done:
    body = await _hashed(fields)
    groups = words_of(fields.get("groups", ""))
    body |= {"groups": groups} if groups else {}
    await session.change("CREATE", "org.cogwork.user", fields["name"], body)
    return Done(f"user {fields['name']} added: without a permission it may connect and no more")


async def _set_user(session: Session, fields: Mapping[str, str]) -> Done:
    body = await _hashed(fields)
    if not body:
        raise WrongForm("Password is missing")
    await session.change("UPDATE", "org.cogwork.user", fields["name"], body)
    return Done("The password is changed.")


async def _add_permission(session: Session, fields: Mapping[str, str]) -> Done:
    rights = [each for each in RIGHTS if flag_of(fields, each)]
    whom = {key: fields[key] for key in ("user", "group") if fields.get(key)}
    if len(whom) != 1:
        raise WrongForm("give either a user or a group")
    options: dict[str, object] = {**whom, "address": fields["address"]}
    options |= {"vhost": fields["vhost"]} if fields.get("vhost") else {}
    options |= {"deny": True} if flag_of(fields, "deny") else {}
    name = permission_name(options)
    await session.change("CREATE", "org.cogwork.permission", name, {**options, "rights": rights})
    return Done(f"{name}: {', '.join(rights)}")


async def _add_vhost(session: Session, fields: Mapping[str, str]) -> Done:
    await session.change("CREATE", "org.cogwork.vhost", fields["name"], {})
    return Done(f"virtual host {fields['name']} added")


async def _set_limit(session: Session, fields: Mapping[str, str]) -> Done:
    value = number_of(fields["value"], "Value")
    await session.change("UPDATE", "org.cogwork.limit", fields["name"], {"value": value})
    return Done(f"{fields['name']} is {value:,}")


async def _set_policy(session: Session, fields: Mapping[str, str]) -> Done:
    body = {
        **pairs_of(fields["definition"], "Definition"),
        "pattern": fields["pattern"],
        "apply_to": fields.get("apply_to") or APPLY_TO[0],
        "priority": number_of(fields.get("priority") or "0", "Priority"),
    }
    await session.change("UPDATE", "org.cogwork.policy", fields["name"], body)
    return Done(f"policy {fields['name']} set")


async def _add_peer(session: Session, fields: Mapping[str, str]) -> Done:
    body = {"cost": number_of(fields.get("cost") or "1", "Cost")}
    await session.change("CREATE", "org.cogwork.link", fields["name"], body)
    return Done("The container dials; the list shows when the link is up.")


def _removing(kind: str) -> Callable[[Session, Mapping[str, str]], Awaitable[Done]]:
    """Make what removes an entity of a type."""

    async def remove(session: Session, fields: Mapping[str, str]) -> Done:
        await session.change("DELETE", f"org.cogwork.{kind}", fields["name"], {})
        return Done(f"{fields['name']} removed", is_gone=True)

    return remove


def _removal(kind: str, warning: str) -> Action:
    name = {"link": "peer"}.get(kind, kind)
    return Action(
        f"{name}.remove",
        "Remove",
        _removing(kind),
        is_dangerous=True,
        warning=warning,
    )


_PASSWORD = Field("password", "Password", "password", hint="Only its hash leaves the console.")

ADMINISTRATION_ACTIONS = (
    Action(
        "user.add",
        "Add a user",
        _add_user,
        "Add",
        (
            Field("name", "User", is_required=True),
            _PASSWORD,
            Field("groups", "Groups", hint="Between commas."),
        ),
    ),
    Action("user.set", "Set the password", _set_user, "Set", (_PASSWORD,)),
    _removal("user", "Its connections are closed everywhere."),
    Action(
        "permission.add",
        "Add a permission",
        _add_permission,
        "Add",
        (
            Field("user", "User"),
            Field("group", "or group"),
            Field("address", "Address", is_required=True, hint="A pattern, such as queue/own.#."),
            Field("vhost", "Virtual host", hint="Empty for the default one; * for all."),
            *(Field(each, each, "flag") for each in RIGHTS),
            Field("deny", "Forbid instead of allow", "flag"),
        ),
    ),
    _removal("permission", "Links that need it are detached."),
    Action(
        "vhost.add",
        "Add a virtual host",
        _add_vhost,
        "Add",
        (Field("name", "Name", is_required=True),),
    ),
    _removal("vhost", "Its addresses are gone."),
    Action(
        "limit.set",
        "Set a limit",
        _set_limit,
        "Set",
        (
            Field("name", "Limit", is_required=True, hint="Such as connections_per_user."),
            Field("value", "Value", "number", is_required=True),
        ),
    ),
    Action(
        "limit.change",
        "Set",
        _set_limit,
        fields=(Field("value", "Value", "number", is_required=True),),
    ),
    _removal("limit", "That of each container's file holds again."),
    Action(
        "policy.set",
        "Set a policy",
        _set_policy,
        "Set",
        (
            Field("name", "Name", is_required=True),
            Field("pattern", "Pattern", is_required=True, hint="A regular expression: ^logs."),
            Field(
                "definition",
                "Definition",
                "area",
                is_required=True,
                hint="One K=V in each line, such as message-ttl=60000.",
            ),
            Field("apply_to", "Applies to", "choice", default="all", choices=APPLY_TO),
            Field("priority", "Priority", "number", default="0"),
        ),
    ),
    _removal("policy", "What was declared holds alone again."),
    Action(
        "peer.add",
        "Add a link",
        _add_peer,
        "Add",
        (
            Field("name", "URL", is_required=True, hint="Of the other container: amqp://HOST."),
            Field("cost", "Cost", "number", default="1"),
        ),
    ),
    _removal("link", "The container dials no more."),
)
