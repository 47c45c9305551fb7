"""What the cluster has set, beside what the container's own file says: users, limits and more.

What passes `check` is part of the cluster's feature level: every member has to decide alike, so a
rule that is tightened or loosened needs a higher level.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
from msgspec import structs

from cogwork.cluster.declarations import LIMIT, PERMISSION, POLICY, ROOT, USER, VHOST
from cogwork.config.checks import (
    problem_of_permission,
    problem_of_policy,
    problem_of_user,
    problem_of_vhost,
)
from cogwork.config.settings import Configuration, Group, Permission, Policy, User, Vhost
from cogwork.container.cluster.declared_limits import (
    declared_limits,
    declared_user_limits,
    problem_of_value,
    with_limits,
    with_user_limits,
)
from cogwork.container.cluster.roots import problem_of_roots
from cogwork.container.security.permissions import permissions_of_anonymous

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.cluster.declarations import Declaration, Declarations, Value

__all__ = (
    "OPTIONS",
    "DeclaredPolicy",
    "Merged",
    "check",
    "declared_policies",
    "merged",
    "permission_name",
    "with_policies",
    "with_vhosts",
)

USER_OPTIONS = ("password_hash", "scram_verifiers", "groups", "mesh")
PERMISSION_OPTIONS = ("user", "group", "vhost", "address", "rights", "deny")
OPTIONS: dict[str, tuple[str, ...]] = {
    USER: USER_OPTIONS,
    PERMISSION: PERMISSION_OPTIONS,
    VHOST: (),
    LIMIT: ("value",),
    POLICY: ("pattern", "apply_to", "priority"),
    ROOT: ("disabled", "allow_none"),
}


Tables = TypeVar("Tables", Configuration, Vhost)


class DeclaredPolicy(NamedTuple):
    """A policy of the cluster's.

    Attributes:
        vhost: Its virtual host.
        policy: What it is.
    """

    vhost: str
    policy: Policy


class Merged(NamedTuple):
    """What holds in one container.

    Attributes:
        configuration: With all users, groups, permissions, virtual hosts and limits.
        clashes: Users that the cluster has declared and the container's own file has, too.
    """

    configuration: Configuration
    clashes: list[str]


def permission_name(options: Mapping[str, object]) -> str:
    """Return what a permission is known by, which says all of it but the rights."""
    verb = "deny" if options.get("deny") else "allow"
    whom = "group" if options.get("group") is not None else "user"
    where = "" if options.get("vhost") is None else f" in {json.dumps(options.get('vhost'))}"
    return f"{verb} {whom} {json.dumps(options.get(whom))}{where} at {options.get('address')}"


def check(kind: str, vhost: str, name: str, options: Mapping[str, Value]) -> str:
    """Say what is wrong with what is to be set; empty where nothing is.

    Args:
        kind: What it is.
        vhost: A policy's; of all others none: a permission's own is one of its options.
        name: Its name.
        options: As given.
    """
    known = OPTIONS[kind]
    unknown = next((each for each in options if each not in known), None)
    if unknown is not None and kind != POLICY:  # what it does not have is its definition's
        expected = f"one of {', '.join(known)}" if known else "none"
        return f"unknown option {unknown!r:.80} of a {kind} (expected {expected})"
    if vhost and kind != POLICY:
        return f"a {kind} is in no virtual host"
    try:
        return _PROBLEMS[kind](name, options)
    except msgspec.ValidationError as error:  # which names the key, and never the value
        return f"a {kind} cannot be like that: {error}"


def _problem_of_user(name: str, options: Mapping[str, Value]) -> str:
    if not name.isprintable():
        return "a user's name needs printable characters"
    return problem_of_user(_user(name, options))


def _problem_of_permission(name: str, options: Mapping[str, Value]) -> str:
    whom = [options.get(each) for each in ("user", "group") if options.get(each) is not None]
    if len(whom) != 1 or not isinstance(whom[0], str) or not whom[0]:
        return "a permission is of one user, or of one group"
    if not isinstance(options.get("deny", False), bool):
        return "deny is true or false"
    if name != permission_name(options):
        return f"this permission is known by {permission_name(options)!r:.200}, not {name!r:.200}"
    return problem_of_permission(_permission(options))


def _problem_of_vhost(name: str, _options: Mapping[str, Value]) -> str:
    return problem_of_vhost(Vhost(name=name))


def _problem_of_limit(name: str, options: Mapping[str, Value]) -> str:
    if not name.isprintable():
        return "a limit's name needs printable characters"
    return problem_of_value(options.get("value"))


def _problem_of_policy(name: str, options: Mapping[str, Value]) -> str:
    return problem_of_policy(policy_of(name, options))


_PROBLEMS = {
    USER: _problem_of_user,
    PERMISSION: _problem_of_permission,
    VHOST: _problem_of_vhost,
    LIMIT: _problem_of_limit,
    POLICY: _problem_of_policy,
    ROOT: problem_of_roots,
}


def _user(name: str, options: Mapping[str, Value]) -> User:
    return msgspec.convert({"name": name, **options}, User)


def _permission(options: Mapping[str, Value]) -> Permission:
    told = {key: options[key] for key in ("vhost", "address", "rights") if key in options}
    return msgspec.convert(told, Permission)


def policy_of(name: str, options: Mapping[str, Value]) -> Policy:
    """Return a policy that the cluster has declared.

    Raises:
        msgspec.ValidationError: An option is wrong.
    """
    own = {key: options[key] for key in OPTIONS[POLICY] if key in options}
    definition = {key: value for key, value in options.items() if key not in own}
    return msgspec.convert({"name": name, "definition": definition, **own}, Policy)


def declared_policies(declarations: Declarations) -> list[DeclaredPolicy]:
    """Return the policies that the cluster has declared."""
    return [
        DeclaredPolicy(each.vhost, policy_of(each.name, each.options))
        for each in declarations.all(POLICY)
    ]


def with_policies(configuration: Configuration, declared: list[DeclaredPolicy]) -> Configuration:
    """Return a configuration with the cluster's policies, too: those that its file does not name.

    Args:
        configuration: The container's own, with all virtual hosts.
        declared: The cluster's.
    """
    if not declared:
        return configuration
    vhosts = [_with_policies(each, each.name, declared) for each in configuration.vhosts]
    return _with_policies(structs.replace(configuration, vhosts=vhosts), "", declared)


def _with_policies(tables: Tables, vhost: str, declared: list[DeclaredPolicy]) -> Tables:
    own: set[str] = {each.name for each in tables.policies}
    here: list[Policy] = [each.policy for each in declared if each.vhost == vhost]
    policies = [*tables.policies, *(each for each in here if each.name not in own)]
    return structs.replace(tables, policies=policies)


def with_vhosts(configuration: Configuration, names: Iterable[str]) -> Configuration:
    """Return a configuration with virtual hosts that its file does not have, too.

    Args:
        configuration: The container's own.
        names: Of the others, which have the built-in rules.
    """
    own = {vhost.name for vhost in configuration.vhosts}
    others = [Vhost(name=each) for each in sorted(set(names) - own)]
    if not others:
        return configuration
    return structs.replace(configuration, vhosts=[*configuration.vhosts, *others])


def merged(configuration: Configuration, declarations: Declarations) -> Merged:
    """Return what holds in a container: what its file says, and what the cluster has declared.

    A user of the file's is as the file says. Permissions of both hold. What may be done without a
    name is for the file alone to say: else the first user of a cluster's would cut its links.

    Args:
        configuration: The container's own.
        declarations: The cluster's.
    """
    vhosts = (each.name for each in declarations.all(VHOST))
    configuration = with_vhosts(configuration, vhosts)
    limits = with_limits(configuration.limits, declared_limits(declarations))
    configuration = structs.replace(configuration, limits=limits)
    own = {user.name for user in configuration.users}
    declared = declarations.all(USER)
    limited = declared_user_limits(declarations)
    if not declared and not declarations.all(PERMISSION) and not limited:
        return Merged(configuration, [])
    users = [*configuration.users]
    users += [_user(each.name, each.options) for each in declared if each.name not in own]
    granted = _granted(declarations.all(PERMISSION))
    groups = {group.name: group for group in configuration.groups}
    for whom, name, _is_denied in granted:
        if whom == "group":
            groups.setdefault(name, Group(name=name))
    anonymous = structs.replace(
        configuration.anonymous, permissions=permissions_of_anonymous(configuration)
    )
    made = structs.replace(
        configuration,
        users=[
            with_user_limits(_with(user, "user", granted), limited.get(user.name)) for user in users
        ],
        groups=[_with(group, "group", granted) for group in groups.values()],
        anonymous=anonymous,
    )
    return Merged(made, [each.name for each in declared if each.name in own])


T = TypeVar("T", User, Group)

_Granted = dict[tuple[str, str, bool], list[Permission]]


def _granted(declared: Iterable[Declaration]) -> _Granted:
    granted: _Granted = {}
    for each in declared:
        whom = "group" if each.options.get("group") is not None else "user"
        key = (whom, str(each.options[whom]), bool(each.options.get("deny")))
        granted.setdefault(key, []).append(_permission(each.options))
    return granted


def _with(entry: T, whom: str, granted: _Granted) -> T:
    allowed: list[Permission] = granted.get((whom, entry.name, False), [])
    denied: list[Permission] = granted.get((whom, entry.name, True), [])
    if not allowed and not denied:
        return entry
    return structs.replace(
        entry, permissions=[*entry.permissions, *allowed], deny=[*entry.deny, *denied]
    )
