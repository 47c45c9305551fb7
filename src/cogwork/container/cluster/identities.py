"""Users and permissions that the cluster has declared, beside those of the container's own file.

What passes `check` is part of the cluster's feature level: every member has to decide alike, so a
rule that is tightened or loosened needs a higher level.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
from msgspec import structs

from cogwork.cluster.declarations import PERMISSION, USER
from cogwork.container.checks import problem_of_permission, problem_of_user
from cogwork.container.permissions import permissions_of_anonymous
from cogwork.container.settings import Group, Permission, User

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.cluster.declarations import Declaration, Declarations, Value
    from cogwork.container.settings import Configuration

__all__ = ("Merged", "check", "merged", "permission_name")

USER_OPTIONS = ("password_hash", "scram_verifiers", "groups", "mesh")
PERMISSION_OPTIONS = ("user", "group", "vhost", "address", "rights", "deny")


class Merged(NamedTuple):
    """What holds in one container.

    Attributes:
        configuration: With all users, groups and permissions.
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
    """Say what is wrong with a user or a permission; empty where nothing is.

    Args:
        kind: Which of them it is.
        vhost: None: a permission's own is one of its options.
        name: Its name.
        options: As given.
    """
    known = USER_OPTIONS if kind == USER else PERMISSION_OPTIONS
    unknown = next((each for each in options if each not in known), None)
    if unknown is not None:
        return f"unknown option {unknown!r:.80} of a {kind} (expected one of {', '.join(known)})"
    if vhost:
        return f"a {kind} is in no virtual host"
    try:
        return _problem_of(kind, name, options)
    except msgspec.ValidationError as error:  # which names the key, and never the value
        return f"a {kind} cannot be like that: {error}"


def _problem_of(kind: str, name: str, options: Mapping[str, Value]) -> str:
    if kind == USER:
        if not name.isprintable():
            return "a user's name needs printable characters"
        return problem_of_user(_user(name, options))
    whom = [options.get(each) for each in ("user", "group") if options.get(each) is not None]
    if len(whom) != 1 or not isinstance(whom[0], str) or not whom[0]:
        return "a permission is of one user, or of one group"
    if not isinstance(options.get("deny", False), bool):
        return "deny is true or false"
    if name != permission_name(options):
        return f"this permission is known by {permission_name(options)!r:.200}, not {name!r:.200}"
    return problem_of_permission(_permission(options))


def _user(name: str, options: Mapping[str, Value]) -> User:
    return msgspec.convert({"name": name, **options}, User)


def _permission(options: Mapping[str, Value]) -> Permission:
    told = {key: options[key] for key in ("vhost", "address", "rights") if key in options}
    return msgspec.convert(told, Permission)


def merged(configuration: Configuration, declarations: Declarations) -> Merged:
    """Return what holds in a container: what its file says, and what the cluster has declared.

    A user of the file's is as the file says. Permissions of both hold. What may be done without a
    name is for the file alone to say: else the first user of a cluster's would cut its links.

    Args:
        configuration: The container's own.
        declarations: The cluster's.
    """
    own = {user.name for user in configuration.users}
    declared = declarations.all(USER)
    if not declared and not declarations.all(PERMISSION):
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
        users=[_with(user, "user", granted) for user in users],
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
