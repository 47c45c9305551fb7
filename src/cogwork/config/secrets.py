"""Secrets that a configuration names and does not hold: in files, and in the environment.

Theory of operation. A document is filled in before it is checked, so that everything behind sees
plain values. `${NAME}` stands for an environment variable; in the part of a URL that holds user and
password its value is percent-encoded, so that no character of a password can move the host.
`KEY_file` names a file whose only line becomes `KEY`. Every reload reads both again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from cogwork.config.password_hash import hash_password, verify
from cogwork.config.problems import Problem
from cogwork.engines.registry import factory_of
from cogwork.io.secret_file import Secret, SecretFileError, read_secret
from cogwork.plugins import PluginError
from cogwork.sasl.verifier import HASHES, make_verifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from cogwork.config.toml_lines import Path as Place

    Warn = Callable[[str], object]

__all__ = ("SECRET_KEYS", "BadVariable", "fill_in", "with_variables")

SECRET_KEYS = frozenset(
    {"key_password", "password", "password_hash", "scram_verifiers", "token", "url"}
)
"""Values that no message may show, or that may hold a password."""

OPEN_KEYS = frozenset({"name", "permissions"})
"""Keys of a user that hold no secret: what stands there is taken as it is."""

OF_ENGINES = ("password", "token", "key_password")
"""Options of engines that may stand in a file of their own."""


class _Hashed(NamedTuple):
    """What a user's file was when it was read, and what `cogwork passwd` prints for it."""

    identity: tuple[int, ...]
    password_hash: str
    scram_verifiers: tuple[str, ...]


_hashes: dict[str, _Hashed] = {}
"""By users' names: a new hash of the same password would look like a change."""

_VARIABLE = re.compile(r"\$(\$)?\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class BadVariable(ValueError):
    """A variable that is named is none, or is not set.

    Attributes:
        found: What stands there.
        expected: What would be right.
    """

    def __init__(self, name: str) -> None:
        is_name = _NAME.fullmatch(name) is not None
        self.found = f'"${{{name:.80}}}"' + (", which is not set" if is_name else "")
        self.expected = (
            "an environment variable that is set"
            if is_name
            else "a name of letters, digits and _ in the braces; $${ for a literal ${"
        )
        super().__init__(f"found {self.found}, expected {self.expected}")


def with_variables(text: str, environment: Mapping[str, str]) -> str:
    """Put the values of environment variables in the place of `${NAME}`; `$${` stands for `${`.

    Args:
        text: A value of the configuration.
        environment: The variables.

    Raises:
        BadVariable: One is not set, or its name is none.
    """
    scheme, mark, rest = text.partition("://")
    login_end = len(scheme) + len(mark) + rest.rfind("@") if mark else -1

    def value_of(match: re.Match[str]) -> str:
        if match[1]:
            return f"${{{match[2]}}}"
        value = environment.get(match[2]) if _NAME.fullmatch(match[2]) else None
        if value is None:
            raise BadVariable(match[2])
        is_in_login = len(scheme) < match.start() < login_end
        return quote(value, safe="") if is_in_login else value

    return _VARIABLE.sub(value_of, text)


def fill_in(
    document: dict[str, Any], directory: Path, environment: Mapping[str, str], warn: Warn
) -> Problem | None:
    """Put secrets where the document names them; return the first that cannot be had.

    Args:
        document: Is changed; keys that do not fit are left to the checks behind.
        directory: Where files are looked for.
        environment: The environment variables.
        warn: Gets a line for each file that others can read.
    """
    filling = _Filling(directory, environment, warn)
    return next(filling.problems_of(document), None)


class _Filling:
    """One pass over one document."""

    def __init__(self, directory: Path, environment: Mapping[str, str], warn: Warn) -> None:
        self._directory = directory
        self._environment = environment
        self._warn = warn

    def problems_of(self, document: dict[str, Any]) -> Iterator[Problem]:
        for place, link in _tables(document, "link"):
            yield from self._expand(place, link, link)
            for key in ("password", "key_password"):
                yield from self._read(place, link, key)
        for place, listen in _tables(document, "listen"):
            tls = listen.get("tls")
            if isinstance(tls, dict):
                yield from self._expand((*place, "tls"), tls, tls)
                yield from self._read((*place, "tls"), tls, "key_password")
        for place, user in _tables(document, "user"):
            yield from self._expand(place, user, [key for key in user if key not in OPEN_KEYS])
            yield from self._hash(place, user)
        for place, engine in _tables(document, "engine"):
            options = engine.get("options")
            if isinstance(options, dict):
                yield from self._expand((*place, "options"), options, options)
                for key in _file_options(engine.get("name"), options):
                    yield from self._read((*place, "options"), options, key)
                    options.pop(f"{key}_file", None)

    def _expand(self, place: Place, table: Any, keys: Iterable[Any]) -> Iterator[Problem]:  # noqa: ANN401  # a table or an array
        """Expand the variables in texts of a table or an array, and of those in it."""
        for key in list(keys):
            value = table[key]
            if isinstance(value, str):
                try:
                    table[key] = with_variables(value, self._environment)
                except BadVariable as error:
                    yield Problem((*place, key), error.found, error.expected)
            elif isinstance(value, dict):
                yield from self._expand((*place, key), value, value)
            elif isinstance(value, list):
                yield from self._expand((*place, key), value, range(len(value)))

    def _read(self, place: Place, table: dict[str, Any], key: str) -> Iterator[Problem]:
        """Read the file of a key, where there is one."""
        name = table.get(f"{key}_file")
        if not isinstance(name, str) or not name:
            return
        if key in table:
            yield Problem((*place, f"{key}_file"), f"a file beside {key}", "one of the two")
            return
        try:
            table[key] = self._secret_in(name).text
        except SecretFileError as error:
            yield Problem((*place, f"{key}_file"), error.found, error.expected)

    def _hash(self, place: Place, user: dict[str, Any]) -> Iterator[Problem]:
        """Read the password of a user, and keep its hash alone."""
        file, name = user.get("password_file"), user.get("name")
        if not isinstance(file, str) or not file or not isinstance(name, str):
            return
        place = (*place, "password_file")
        for key in ("password_hash", "scram_verifiers"):
            if key in user:
                yield Problem(place, f"a file beside {key}", "one of the two")
                return
        try:
            hashed = _hash_of(name, self._secret_in(file))
            user["password_hash"] = hashed.password_hash
            user["scram_verifiers"] = list(hashed.scram_verifiers)
        except SecretFileError as error:
            yield Problem(place, error.found, error.expected)

    def _secret_in(self, name: str) -> Secret:
        """Read a file, and warn of others who may read it.

        Raises:
            SecretFileError: It holds no secret.
        """
        file = self._directory / name
        secret = read_secret(file)
        if secret.is_readable_by_others:
            self._warn(f"{file} holds a secret and every user can read it: chmod o= {file}")
        return secret


def _hash_of(name: str, secret: Secret) -> _Hashed:
    """Return the hashes of a user's password: the same ones for as long as that is the same."""
    known = _hashes.get(name)
    if known is None or known.identity != secret.identity:
        if known is not None and verify(known.password_hash, secret.text):
            known = known._replace(identity=secret.identity)
        else:
            verifiers = tuple(str(make_verifier(each, secret.text)) for each in HASHES)
            known = _Hashed(secret.identity, hash_password(secret.text), verifiers)
        _hashes[name] = known
    return known


def _tables(document: dict[str, Any], key: str) -> Iterator[tuple[Place, dict[str, Any]]]:
    tables = document.get(key)
    for at, table in enumerate(tables if isinstance(tables, list) else ()):
        if isinstance(table, dict):
            yield (key, at), table


def _file_options(engine: object, options: Mapping[str, object]) -> list[str]:
    """Return which options of an engine stand in a file, of those that it takes by themselves."""
    if not any(f"{key}_file" in options for key in OF_ENGINES):
        return []
    try:
        known = getattr(factory_of(engine), "host_options", ()) if isinstance(engine, str) else ()
    except PluginError:
        return []
    return [key for key in OF_ENGINES if key in known and f"{key}_file" not in known]
