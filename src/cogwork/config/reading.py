"""Reads `cogwork.toml`: from text to a checked `Configuration`, or to one error with its place.

Theory of operation. The library parses the text, the Structs of `settings` say which keys there
are and of which type, `checks` holds the rules between keys. Each of the three reports the path of
what is wrong; the text is walked once more to find its line, and only then. A router's file, which
is made of blocks, is translated into the same document, and brings the lines along.
"""

from __future__ import annotations

import difflib
import logging
import math
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec
from msgspec import inspect

from cogwork.config.checks import find_problem
from cogwork.config.engine_checks import find_unloadable_engine, find_without_disk
from cogwork.config.errors import UNKNOWN_KEY, ConfigurationError, OptionError, Unreadable
from cogwork.config.exposure import readable_secrets
from cogwork.config.link_urls import BadLinkUrl, LinkUrl
from cogwork.config.node_checks import find_unloadable_node
from cogwork.config.oauth_checks import is_url
from cogwork.config.pattern_options import with_patterns
from cogwork.config.problems import Problem
from cogwork.config.router_blocks import translate
from cogwork.config.router_file import is_router_file
from cogwork.config.secrets import SECRET_KEYS, BadVariable, fill_in, with_variables
from cogwork.config.settings import (
    VOTERS_MAX,
    Cluster,
    Configuration,
    Link,
    Listen,
    OAuth,
    SecurityLogOptions,
    Telemetry,
    Tls,
)
from cogwork.config.tls_checks import find_unusable_secret
from cogwork.config.toml_lines import Path, find_lines, line_of
from cogwork.plugin.shape import describe, is_tables, keys_at, type_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

__all__ = (
    "Configuration",
    "ConfigurationError",
    "check",
    "defaults",
    "load",
    "parse",
    "with_options",
)

Table = TypeVar("Table", Tls, Link, OAuth, SecurityLogOptions)

HERE = FilePath()

ROUTER_SUFFIX = ".conf"

Warn = Callable[[str], object]

log = logging.getLogger("cogwork")

SHOWN_CHARACTERS_MAX = 40
"""How much of a wrong value a message quotes."""

_SYNTAX_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_PATH_PART = re.compile(r"\.(\w+)|\[(\d+)\]")
_MISSING_KEY = re.compile(r"missing required field `(\w+)`")
_UNIX = "unix://"
_OF_ENDPOINTS = ("listen", "link")
_ENDPOINT = re.compile(r"(?:\[([^\]]+)\]|([^:]*)):(\d+)")


def defaults() -> Configuration:
    """Return the configuration of a container that was given none: open, and on loopback only."""
    return Configuration()


def load(path: str | FilePath, *, warn: Warn = log.warning) -> Configuration:
    """Read a configuration file; the files it names are looked for in its directory.

    Args:
        path: The file.
        warn: Gets a line for each thing that a router's file says and that does not hold here.

    Returns:
        A configuration without contradictions.

    Raises:
        ConfigurationError: The file cannot be read, or what it says cannot be used.
    """
    path = FilePath(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")  # some editors write a mark first
    except OSError as error:
        raise Unreadable(str(path), error.strerror or "an error") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        found = f"the byte {error.object[error.start]:#04x}"
        raise ConfigurationError(str(path), line, "", found, "text in UTF-8") from error
    configuration = parse(text, str(path), warn=warn, directory=path.parent)
    exposed = readable_secrets(path, text)
    if exposed is not None:
        warn(exposed)
    configuration = _relative_to(configuration, path.parent)
    problem = find_unusable_secret(configuration)
    if problem is not None:
        raise _error(problem, str(path), line_of(find_lines(text), problem.path))
    return configuration


def parse(
    text: str,
    source_name: str = "cogwork.toml",
    *,
    warn: Warn = log.warning,
    directory: FilePath = HERE,
    beside: Collection[str] = (),
) -> Configuration:
    """Read a configuration from text.

    Args:
        text: A TOML document, or the blocks of a router.
        source_name: What messages call it; the name of a router's file may end in `.conf`.
        warn: Gets a line for each thing that a router's file says and that does not hold here, and
            for each file with a secret that others can read.
        directory: Where files with secrets are looked for.
        beside: Tables that are none of a configuration's, and are left aside.

    Returns:
        A configuration without contradictions.

    Raises:
        ConfigurationError: Names the line, the key, what was found and what was expected.
    """
    if source_name.endswith(ROUTER_SUFFIX) or is_router_file(text):
        return _parse_router(text, source_name, directory, warn=warn)
    try:
        document = _document_of(text, source_name)
        for key in beside:
            document.pop(key, None)
        problem, configuration = _find(document, directory, warn)
    except RecursionError as error:
        found, expected = "tables or arrays too deep in each other", "fewer of them"
        raise ConfigurationError(source_name, 0, "", found, expected) from error
    if problem is not None:
        line = line_of(find_lines(text), problem.path)
        raise _error(problem, source_name, line)
    return configuration


def _document_of(text: str, source_name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        _raise_syntax_error(error, text, source_name)
    except ValueError as error:  # Python reads no more than so many digits
        found = "a number of thousands of digits"
        raise ConfigurationError(source_name, 0, "", found, "a shorter one") from error


def _parse_router(text: str, source_name: str, directory: FilePath, *, warn: Warn) -> Configuration:
    """Read a router's file; what is wrong is told in the names that stand there."""
    translation = translate(text, source_name)
    for note in translation.notes:
        warn(f"{source_name}:{note.line}: {note.key}: {note.text}")
    problem, configuration = _find(translation.document, directory, warn)
    if problem is not None:
        line, name = translation.place_of(problem.path)
        raise ConfigurationError(source_name, line, name, problem.found, problem.expected)
    return configuration


def _find(
    document: dict[str, Any], directory: FilePath, warn: Warn
) -> tuple[Problem | None, Configuration]:
    """Make a configuration of a document, and find what is wrong with either."""
    problem = _find_unfit(document)
    if problem is not None:
        return problem, defaults()
    _expand_endpoints(document)
    problem = fill_in(document, directory, os.environ, warn)
    if problem is not None:
        return problem, defaults()
    problem, configuration = _convert(document)
    return problem or find_problem(configuration), configuration


def check(configuration: Configuration, source_name: str = "options") -> None:
    """Check a configuration that was put together by a program.

    Args:
        configuration: The one to check.
        source_name: What messages call it.

    Raises:
        ConfigurationError: It contradicts itself.
    """
    problem = find_problem(configuration)
    if problem is not None:
        raise _error(problem, source_name, 0)


def with_options(
    configuration: Configuration,
    container_id: str | None = None,
    listen: Sequence[str] = (),
    data_dir: str | None = None,
    *,
    links: Sequence[str] = (),
    workers: int | None = None,
    has_telemetry: bool = False,
    readers: int | None = None,
    queue_patterns: Sequence[str] = (),
    topic_patterns: Sequence[str] = (),
    gateways: Sequence[str] = (),
    primaries: str | None = None,
    cluster: str | None = None,
    file: FilePath | None = None,
) -> Configuration:
    """Let the options of the command line win over the file.

    Args:
        configuration: What the file says.
        container_id: `--id`.
        listen: Each `--listen`, as HOST:PORT or unix://PATH; given any, they replace the file's
            listeners.
        data_dir: `--data`.
        links: Each `--link`, besides those of the file.
        workers: `--workers`.
        has_telemetry: `--telemetry`.
        readers: `--arrow`.
        queue_patterns: Each `--queue-patterns`; before what the file says of the same addresses.
        topic_patterns: Each `--topic-patterns`, the same.
        gateways: Each `--gateway`, besides those of the file.
        primaries: `--primaries`: ids, with commas between.
        cluster: `--cluster`: the cluster's name.
        file: Where the configuration is from, for messages.

    Raises:
        OptionError: An option is malformed.
        ConfigurationError: It contradicts the file.
    """
    changes = _identity_options(container_id, data_dir)
    if primaries is not None:
        changes["cluster"] = _primaries_option(configuration.cluster, primaries)
    if cluster is not None:
        named = {"name": _named("--cluster", cluster, "a name")}
        changes["cluster"] = _changed(
            changes.get("cluster", configuration.cluster), named, "--cluster", "1 to 64 characters"
        )
    if workers is not None:
        changes["workers"] = workers
    if has_telemetry and configuration.telemetry is None:
        changes["telemetry"] = Telemetry()
    if readers is not None:
        changes["arrow"] = msgspec.structs.replace(configuration.arrow, readers=readers)
    if gateways:
        changes["gateways"] = {name: {} for name in gateways} | configuration.gateways
    if listen:
        changes["listeners"] = [_listen_option(endpoint) for endpoint in listen]
    if links:
        changes["links"] = [*configuration.links, *map(_link_option, links)]
    if queue_patterns or topic_patterns:
        changes["addresses"] = with_patterns(
            configuration.addresses, queue_patterns, topic_patterns
        )
    changed = msgspec.structs.replace(configuration, **changes)
    check(changed)
    _check_start(changed, file)
    return changed


def _check_start(configuration: Configuration, file: FilePath | None) -> None:
    """Refuse what needs a disk where nothing names one, and plug-ins that cannot be loaded."""
    problem = (
        find_without_disk(configuration)
        or find_unloadable_engine(configuration)
        or find_unloadable_node(configuration)
    )
    if problem is None:
        return
    if file is None:
        raise _error(problem, "options", 0)
    raise _error(problem, str(file), line_of(find_lines(file.read_text()), problem.path))


def _named(option: str, name: str, expected: str) -> str:
    """Refuse an option without a value, as of a script's variable that is not set."""
    if not name:
        raise OptionError(option, _show(name), expected)
    return name


def _identity_options(container_id: str | None, data_dir: str | None) -> dict[str, Any]:
    """Read what a container is, and where it keeps that."""
    changes: dict[str, Any] = {}
    if container_id is not None:
        changes["id"] = _named("--id", container_id, "a name")
    if data_dir is not None:
        changes["data_dir"] = _named("--data", data_dir, "a directory")
    return changes


def _primaries_option(cluster: Cluster, text: str) -> Cluster:
    primaries = [each.strip() for each in text.split(",")]
    expected = f"up to {VOTERS_MAX} ids of containers, with commas between"
    return _changed(cluster, {"primaries": primaries, "voters": None}, "--primaries", expected)


def _changed(cluster: Cluster, changes: dict[str, Any], option: str, expected: str) -> Cluster:
    """Have an option change what the file says of the cluster.

    Raises:
        OptionError: It says what cannot be.
    """
    try:
        return msgspec.convert(msgspec.structs.asdict(cluster) | changes, Cluster)
    except msgspec.ValidationError as error:
        told = next(value for value in changes.values() if value is not None)
        shown = ",".join(told) if isinstance(told, list) else str(told)
        raise OptionError(option, _show(shown), expected) from error


def _listen_option(endpoint: str) -> Listen:
    parts = _split_endpoint(endpoint)
    if parts is None:
        raise OptionError("--listen", _show(endpoint), "HOST:PORT or unix://PATH")
    try:
        return msgspec.convert(parts, Listen)
    except msgspec.ValidationError as error:
        expected = "a port from 0 to 65535"
        raise OptionError("--listen", _show(endpoint), expected) from error


def _link_option(url: str) -> Link:
    try:
        url = with_variables(url, os.environ)
        LinkUrl.parse(url)
    except BadVariable as error:
        raise OptionError("--link", error.found, error.expected) from error
    except BadLinkUrl as error:
        raise OptionError("--link", error.found, error.expected) from error
    return Link(url=url)


def _split_endpoint(endpoint: str) -> dict[str, Any] | None:
    """Take HOST:PORT, [ADDRESS]:PORT or unix://PATH apart.

    No host is loopback, never every interface.
    """
    if endpoint.startswith(f"{_UNIX}/"):
        return {"path": endpoint.removeprefix(_UNIX)}
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None:
        return None
    host = match[1] or match[2]
    return {"port": int(match[3])} | ({"host": host} if host else {})


def _expand_endpoints(document: dict[str, Any]) -> None:
    """Turn the strings of `listen = ["HOST:PORT"]` and `link = ["HOST:PORT"]` into tables."""
    link = document.get("link")
    if isinstance(link, list):
        document["link"] = [{"url": item} if isinstance(item, str) else item for item in link]
    listen = document.get("listen")
    if isinstance(listen, list):
        document["listen"] = [
            (_split_endpoint(item) or item) if isinstance(item, str) else item for item in listen
        ]


def _find_unfit(value: object, path: Path = ()) -> Problem | None:
    """Find a key that no table has, or a number that is none, as TOML's nan and inf."""
    if isinstance(value, float) and not math.isfinite(value):
        return Problem(path, _show(value), "a finite number")
    known = keys_at(Configuration, path) if isinstance(value, dict) else []
    for key, child in _children(value):
        if known and key not in known:
            return Problem((*path, key), UNKNOWN_KEY, _suggest(str(key), known))
        problem = _find_unfit(child, (*path, key))
        if problem is not None:
            return problem
    return None


def _children(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _convert(document: dict[str, Any]) -> tuple[Problem | None, Configuration]:
    try:
        return None, msgspec.convert(document, Configuration)
    except msgspec.ValidationError as error:
        return _problem_of(str(error), document), defaults()


def _problem_of(message: str, document: dict[str, Any]) -> Problem:
    """Read the path out of the library's message, and say the rest in the file's own terms."""
    what, _, place = message.partition(" - at `$")
    path: Path = tuple(key or int(position) for key, position in _PATH_PART.findall(place))
    missing = _MISSING_KEY.search(what)
    if missing is not None:
        path = (*path, missing[1])
    found = "nothing" if missing else _show_at(document, path)
    declared = type_at(Configuration, path)
    expected = describe(declared)
    if found == '""' and expected == describe(inspect.StrType()):
        expected += " that is not empty"
    if len(path) == 2 and path[0] in _OF_ENDPOINTS:
        expected += ' or "HOST:PORT"'
    if is_tables(declared):
        expected += _tables(path)
    return Problem(path, found, expected)


def _tables(path: Path) -> str:
    """Return how an array of tables is written."""
    name = ".".join(part for part in path if isinstance(part, str))
    strings = f', or {name} = ["HOST:PORT"]' if name in _OF_ENDPOINTS else ""
    return f": [[{name}]] and its keys below that line{strings}"


def _suggest(key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"one of {', '.join(known)}{hint}"


def _show_at(document: object, path: Path) -> str:
    for part in path:
        document = document[part]  # type: ignore[index] # the path was made from this document
    return "a value that is not shown" if SECRET_KEYS.intersection(path) else _show(document)


def _show(value: object) -> str:
    match value:
        case dict():
            return "a table"
        case list():
            return f"an array of {len(value)}" if value else "an empty array"
        case str():
            shown = f"{value[:SHOWN_CHARACTERS_MAX]}..." if value[SHOWN_CHARACTERS_MAX:] else value
            return f'"{shown}"'
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _raise_syntax_error(error: tomllib.TOMLDecodeError, text: str, source_name: str) -> NoReturn:
    message = str(error)
    match = _SYNTAX_PLACE.search(message)
    line = int(match[1]) if match and match[1] else text.count("\n") + 1
    what = message[: match.start()] if match else message
    raise ConfigurationError(source_name, line, "", what, "TOML") from error


def _error(problem: Problem, source_name: str, line: int) -> ConfigurationError:
    return ConfigurationError(
        source_name, line, key_of(problem.path), problem.found, problem.expected
    )


def key_of(path: Path) -> str:
    """Write a path as a person would: `listen[0].port`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def _relative_to(configuration: Configuration, directory: FilePath) -> Configuration:
    """Make the file names in a configuration those that its own directory gives them."""

    def anchored(name: str | None) -> str | None:
        return None if name is None else str(directory / name)

    def anchor(table: Table, *keys: str) -> Table:
        names = {key: anchored(getattr(table, key)) for key in keys}
        return msgspec.structs.replace(table, **names)

    def anchor_tls(tls: Tls) -> Tls:
        return anchor(tls, "certificate", "key", "client_ca", "key_password_file", "crl_file")

    def anchor_listen(listen: Listen) -> Listen:
        tls = None if listen.tls is None else anchor_tls(listen.tls)
        path = None if listen.path is None else str((directory / listen.path).absolute())
        return msgspec.structs.replace(listen, tls=tls, path=path)

    listeners = [anchor_listen(each) for each in configuration.listeners]
    secrets = ("password_file", "token_file", "key_password_file")
    of_links = ("certificate", "key", "ca", "crl_file", *secrets)
    links = [anchor(link, *of_links) for link in configuration.links]
    security = configuration.security_log
    gateways = {
        name: {key: _anchored(directory, key, value) for key, value in options.items()}
        for name, options in configuration.gateways.items()
    }
    oauth = configuration.oauth
    if oauth is not None:
        files = ("ca",) if is_url(oauth.jwks) else ("jwks", "ca")
        oauth = anchor(oauth, *files)
    return msgspec.structs.replace(
        configuration,
        oauth=oauth,
        listeners=listeners,
        links=links,
        data_dir=anchored(configuration.data_dir),
        security_log=security and anchor(security, "path"),
        gateways=gateways,
    )


def _anchored(directory: FilePath, key: str, value: object) -> object:
    """Make an option of a gateway that names a file the one that its directory gives it."""
    is_file = key.endswith(("_file", "_dir")) and isinstance(value, str)
    return str(directory / str(value)) if is_file else value
