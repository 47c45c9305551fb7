"""What the blocks of a router's configuration file mean here: from blocks to the tables of TOML.

Theory of operation. Each kind of block has a table of the keys that it takes, and of which type.
Names are those of qdrouterd, old (`fixed-address`, `sasl-mechanisms`) and new (`address`,
`saslMechanisms`): hyphens and capitals mean nothing. What comes out is the document that a TOML
file would have been, so the same rules hold for it, and for each path in it the line and the name
in the router's file, so that what they say leads there.

A router's file is taken as it is: a block, a key or a value that has no meaning here becomes a
warning with its line, and the rest of the file holds. An error is what makes no sense in a router
either, and a listener that could let nobody in. A file may never open more than it says: where it
has anonymous clients come from other machines, the listener moves to the loopback interface.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import quote

from cogwork.config.errors import ConfigurationError
from cogwork.config.limits import FRAME_SIZE_BYTES_LEAST, FRAME_SIZE_BYTES_MOST
from cogwork.config.router_file import Block, Value, read_blocks
from cogwork.config.settings import RIGHTS, Listen
from cogwork.router.own_addresses import MANAGEMENT
from cogwork.router.rules import UNAVAILABLE

if TYPE_CHECKING:
    from cogwork.config.toml_lines import Path

__all__ = ("Note", "Translation", "translate")

SERVICES = {"amqp": 5672, "amqps": 5671}
"""Ports that may be named (RFC 6335)."""

TRUTHS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}

Convert = Callable[[str], Any]


class Note(NamedTuple):
    """What a file says that does not hold here.

    Attributes:
        line: Where it stands.
        key: Block and key, as written.
        text: What becomes of it.
    """

    line: int
    key: str
    text: str


class _Unfit(Exception):
    """A value that a key does not take; the text says what it takes."""


@dataclass
class Translation:
    """What a router's file says, in the terms of `cogwork.toml`.

    Attributes:
        document: As if parsed from TOML.
        places: For each path in it, the line and the name in the router's file.
        notes: What does not hold here, in the order of the lines.
    """

    document: dict[str, Any] = field(default_factory=dict)
    places: dict[Path, tuple[int, str]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    def place_of(self, path: Path) -> tuple[int, str]:
        """Find the line and the name for a path, or for what is nearest around it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (0, ""))


def translate(text: str, source_name: str) -> Translation:
    """Read a router's configuration file.

    Args:
        text: What stands in it.
        source_name: What messages call it.

    Raises:
        ConfigurationError: It has what nothing here is like; names the line.
    """
    return _Translator(source_name).translate(read_blocks(text, source_name))


def _text(value: str) -> str:
    return value


def _number(value: str) -> float | int:
    try:
        return int(value) if value.lstrip("-").isdigit() else float(value)
    except ValueError:
        raise _Unfit("a number") from None


def _port(value: str) -> int:
    if value in SERVICES:
        return SERVICES[value]
    if not value.isdigit():
        raise _Unfit("a port, amqp or amqps")
    return int(value)


def _truth(value: str) -> bool:
    if value.lower() not in TRUTHS:
        raise _Unfit("yes or no")
    return TRUTHS[value.lower()]


def _words(value: str) -> list[str]:
    return value.replace(",", " ").split()


def _only(*values: str) -> Convert:
    """Take these values and no other, which have no meaning of their own here."""

    def convert(value: str) -> str:
        if value.lower() not in values:
            raise _Unfit(" or ".join(values))
        return value

    return convert


DISTRIBUTIONS = ("multicast", "closest", "balanced", UNAVAILABLE)

KEYS: dict[str, dict[str, Convert]] = {
    "fixedaddress": {
        "name": _text,
        "prefix": _text,
        "pattern": _text,
        "fanout": _text,
        "bias": _text,
        "phase": _text,
    },
    "address": {"name": _text, "prefix": _text, "pattern": _text, "distribution": _text},
    "listener": {
        "name": _text,
        "host": _text,
        "addr": _text,
        "port": _port,
        "role": _only("normal", "inter-router", "edge", "route-container", "on-demand"),
        "saslMechanisms": _words,
        "authenticatePeer": _truth,
        "requireSsl": _truth,
        "sslProfile": _text,
        "http": _truth,
        "idleTimeoutSeconds": _number,
        "maxFrameSize": _number,
        "maxSessions": _number,
        "maxSessionFrames": _number,
        "linkCapacity": _number,
    },
    "connector": {
        "name": _text,
        "host": _text,
        "addr": _text,
        "port": _port,
        "role": _only("normal", "inter-router", "edge", "route-container", "on-demand"),
        "cost": _number,
        "sslProfile": _text,
        "saslUsername": _text,
        "saslPassword": _text,
        "verifyHostname": _truth,
    },
    "router": {
        "id": _text,
        "routerId": _text,
        "mode": _only("interior", "standalone", "edge"),
        "defaultDistribution": _only(*DISTRIBUTIONS),
        "helloIntervalSeconds": _number,
        "helloInterval": _number,
        "workerThreads": _number,
    },
    "container": {"containerName": _text, "workerThreads": _number},
    "sslprofile": {
        "name": _text,
        "certFile": _text,
        "privateKeyFile": _text,
        "keyFile": _text,
        "caCertFile": _text,
        "certDb": _text,
    },
    "user": {"name": _text, "passwordHash": _text, "mesh": _truth},
    "log": {},
}
"""The blocks, and the keys that each takes.

`log` takes any, for logs go to stderr. `user` is no router's, where others know of users."""

LAST = {"router": 1, "container": 2}
"""The blocks that are taken after all others."""

MEANINGLESS = "has no meaning here and is ignored"


class _Limit(NamedTuple):
    """What a router bounds for each listener, and a container for all of them."""

    name: str
    least: int
    most: int


LIMITS = {
    "idleTimeoutSeconds": _Limit("idle_timeout_s", 1, 1_000_000),
    "maxFrameSize": _Limit("max_frame_size_bytes", FRAME_SIZE_BYTES_LEAST, FRAME_SIZE_BYTES_MOST),
    "maxSessions": _Limit("sessions_per_connection", 1, 65_536),
    "maxSessionFrames": _Limit("session_window_frames", 1, 2**31 - 1),
    "linkCapacity": _Limit("link_credit", 1, 2**31 - 1),
}

MECHANISMS = ("ANONYMOUS", "PLAIN", "EXTERNAL")
"""Those that containers know."""

USERS_EXPECTED = "a user block lets people in (`cogwork passwd NAME` makes the hash)"

LOOPBACK, LOOPBACK_6 = "127.0.0.1", "::1"


def _plain(name: str) -> str:
    """Write a name of a block or key in one way."""
    return name.replace("-", "").lower()


class _Read:
    """The values of one block, converted, by the names in `KEYS`."""

    def __init__(self, block: Block, source_name: str, notes: list[Note]) -> None:
        self.block = block
        self.lines: dict[str, int] = {}
        self._notes = notes
        self._source_name = source_name
        self._values: dict[str, Any] = {}
        known = KEYS[_plain(block.name)]
        names = {_plain(name): name for name in known}
        for written, value in block.values.items():
            name = names.get(_plain(written))
            if name is None:
                if known:
                    self._note(value.line, written, MEANINGLESS)
                continue
            self._values[name] = self._convert(known[name], written, value)
            self.lines[name] = value.line
        for key, line in block.repeated:
            self._note(line, key, "stands there again; the last one holds")

    def _convert(self, convert: Convert, written: str, value: Value) -> object:
        try:
            return convert(value.text)
        except _Unfit as unfit:
            return self.fail(written, f'"{value.text}"', str(unfit), value.line)

    def get(self, *names: str) -> Any:  # noqa: ANN401  # what the key takes
        """Return the value of the first of these keys that is there, or None."""
        return next((self._values[name] for name in names if name in self._values), None)

    def has(self, name: str) -> bool:
        """Return whether a key is there."""
        return name in self._values

    def need(self, *names: str) -> Any:  # noqa: ANN401  # what the key takes
        """Return the value of the first of these keys, one of which must be there."""
        value = self.get(*names)
        return (
            self.fail(names[0], "nothing", "a value", self.block.line) if value is None else value
        )

    def drop(self, name: str) -> None:
        """Forget a key."""
        self._values.pop(name, None)
        self.lines.pop(name, None)

    def note(self, key: str, text: str) -> None:
        """Note what becomes of a key, or of the whole block where the key is empty or missing."""
        self._note(self.lines.get(key, self.block.line), key if key in self.lines else "", text)

    def _note(self, line: int, key: str, text: str) -> None:
        self._notes.append(Note(line, f"{self.block.name}.{key}".removesuffix("."), text))

    def fail(self, key: str, found: str, expected: str, line: int | None = None) -> NoReturn:
        """Refuse the block for one of its keys."""
        at = self.lines.get(key, self.block.line) if line is None else line
        place = f"{self.block.name}.{key}" if key else self.block.name
        raise ConfigurationError(self._source_name, at, place, found, expected)


class _Translator:
    """Puts the tables of one file together."""

    def __init__(self, source_name: str) -> None:
        self._source_name = source_name
        self._result = Translation()
        self._profiles: dict[str, _Read] = {}
        self._has_users = self._has_passwords = False
        self._closed: _Read | None = None

    def translate(self, blocks: list[Block]) -> Translation:
        """Translate all blocks; those that others name come first."""
        reads = [read for block in blocks if (read := self._read(block)) is not None]
        for read in reads:
            if _plain(read.block.name) == "sslprofile":
                self._profiles[read.need("name")] = read
            self._has_passwords |= _plain(read.block.name) == "user" and read.has("passwordHash")
            self._has_users |= _plain(read.block.name) == "user"
        take: dict[str, Callable[[_Read], None]] = {
            "fixedaddress": self._take_fixed_address,
            "address": self._take_address,
            "listener": self._take_listener,
            "connector": self._take_connector,
            "router": self._take_router,
            "container": self._take_container,
            "user": self._take_user,
        }
        # A default distribution after the addresses, an old router's name after that of a new one.
        for read in sorted(reads, key=lambda each: LAST.get(_plain(each.block.name), 0)):
            if (taker := take.get(_plain(read.block.name))) is not None:
                taker(read)
        if self._closed is not None and not self._result.document.get("listen"):
            found, expected = "a listener where nobody could log in", USERS_EXPECTED
            self._closed.fail("saslMechanisms", found, expected)
        self._result.notes.sort()
        return self._result

    def _read(self, block: Block) -> _Read | None:
        if _plain(block.name) not in KEYS:
            self._result.notes.append(Note(block.line, block.name, MEANINGLESS))
            return None
        return _Read(block, self._source_name, self._result.notes)

    # -- blocks

    def _take_fixed_address(self, read: _Read) -> None:
        """Fanout is multiple where it is left out, and then a bias means nothing."""
        entry = {key: read.get(key) for key in ("prefix", "pattern", "fanout", "bias")}
        if entry["fanout"] is None and entry["bias"] is None:
            entry["fanout"] = "multiple"
        if entry["fanout"] == "multiple" and entry["bias"] in ("closest", "spread"):
            entry["bias"] = None
        if read.get("phase") not in (None, "0"):
            read.note("phase", MEANINGLESS)
        if not self._stands_already("address", read, entry, ("prefix", "pattern")):
            self._add("address", read, entry)

    def _take_address(self, read: _Read) -> None:
        entry = {key: read.get(key) for key in ("prefix", "pattern")}
        entry |= _distributed(read.get("distribution") or "balanced")
        if not self._stands_already("address", read, entry, ("prefix", "pattern")):
            self._add("address", read, entry, {"distribution": next(reversed(entry))})

    def _take_listener(self, read: _Read) -> None:
        profile = self._profile(read)
        if read.get("requireSsl") and profile is None:
            read.fail("requireSsl", "yes", "an sslProfile with it")
        if profile is not None and read.get("requireSsl") is False:
            read.note("requireSsl", "TLS is required: one port speaks it to all, or to nobody")
        if read.get("role") in ("route-container", "on-demand"):
            read.note("role", "links are routed by address alone; this is an ordinary listener")
        transport = "ws" if read.get("http") else "amqp"
        entry = {
            "host": read.get("host", "addr"),
            "port": SERVICES["amqp"] if read.get("port") is None else read.get("port"),
            "transport": transport if profile is None else f"{transport}s",
            "sasl": self._mechanisms(read, profile),
            "tls": None if profile is None else _tls_of(profile),
        }
        for name, limit in LIMITS.items():
            if read.has(name):
                self._set_limit(read, name, limit)
        if self._closes(read, entry):
            self._closed = read
            return
        names = {"addr": "host", "saslMechanisms": "sasl", "sslProfile": "tls"}
        self._add("listen", read, entry, names)

    def _take_connector(self, read: _Read) -> None:
        if read.get("role") not in ("inter-router", "edge"):
            read.note("role", "not a connection to a router: ignored")
            return
        if read.get("verifyHostname") is False:
            read.note("verifyHostname", "the host name is verified nevertheless")
        profile = self._profile(read)
        host = read.get("host", "addr") or "127.0.0.1"
        port = SERVICES["amqp"] if read.get("port") is None else read.get("port")
        login = "".join(
            (
                quote(read.get("saslUsername") or "", safe=""),
                f":{quote(read.get('saslPassword'), safe='')}" if read.has("saslPassword") else "",
                "@" if read.has("saslUsername") else "",
            )
        )
        at = f"[{host}]" if ":" in host else host
        scheme = "amqp" if profile is None else "amqps"
        entry = {"url": f"{scheme}://{login}{at}:{port}", "cost": read.get("cost")}
        if profile is not None:
            tls = _tls_of(profile)
            entry |= {"certificate": tls.get("certificate"), "key": tls.get("key")}
            entry["ca"] = tls.get("client_ca")
        names = {"host": "url", "addr": "url", "port": "url", "saslUsername": "url"}
        if not self._stands_already("link", read, entry, ("url",)):
            self._add("link", read, entry, names)

    def _take_router(self, read: _Read) -> None:
        for name in ("id", "routerId"):
            if read.has(name):
                self._set("", "id", read, name)
        for name in ("helloIntervalSeconds", "helloInterval"):
            if read.has(name):
                self._set("mesh", "heartbeat_s", read, name)
        if read.has("defaultDistribution"):
            # Less specific than every other rule, the built-in ones too; except for an equal one.
            entry = {"pattern": "#", **_distributed(read.get("defaultDistribution"))}
            if not self._stands_already("address", read, entry, ("pattern",)):
                self._add("address", read, entry, {"defaultDistribution": next(reversed(entry))})

    def _take_container(self, read: _Read) -> None:
        """An old router's name; that of the `router` block comes before it."""
        if read.has("containerName") and "id" not in self._result.document:
            self._set("", "id", read, "containerName")

    def _take_user(self, read: _Read) -> None:
        """A router lets those who log in do everything."""
        entry = {
            "name": read.need("name"),
            "password_hash": read.get("passwordHash"),
            "mesh": read.get("mesh"),
            "permissions": [
                {"address": each, "rights": list(RIGHTS)} for each in ("#", MANAGEMENT)
            ],
        }
        self._add("user", read, entry, {"passwordHash": "password_hash"})

    # -- their parts

    def _profile(self, read: _Read) -> _Read | None:
        """Find the certificates that a block names."""
        name = read.get("sslProfile")
        if name is None:
            return None
        if name not in self._profiles:
            known = ", ".join(self._profiles) or "none is defined"
            read.fail("sslProfile", f'"{name}"', f"the name of an sslProfile block ({known})")
        return self._profiles[name]

    def _mechanisms(self, read: _Read, profile: _Read | None) -> list[str] | None:
        """Return which mechanisms a listener offers; None leaves it to the container."""
        given: list[str] | None = read.get("saslMechanisms")
        has_ca = profile is not None and profile.get("caCertFile", "certDb") is not None
        if given is None:
            if not read.get("authenticatePeer"):
                return None
            return ["EXTERNAL", "PLAIN"] if has_ca else ["PLAIN"]
        known = [each for each in MECHANISMS if each in given and (has_ca or each != "EXTERNAL")]
        if unknown := [each for each in given if each not in known]:
            why = "EXTERNAL needs a caCertFile" if "EXTERNAL" in unknown else "not known here"
            read.note("saslMechanisms", f"{', '.join(unknown)} is not offered: {why}")
        if read.get("authenticatePeer"):
            return [mechanism for mechanism in known if mechanism != "ANONYMOUS"]
        return known

    def _closes(self, read: _Read, entry: dict[str, Any]) -> bool:
        """Return whether a listener lets nobody in; keep others from letting strangers in.

        Nobody is anonymous who comes from another machine: with users, the mechanism is left out,
        and without any, the listener moves to the loopback interface.
        """
        host = entry["host"] or LOOPBACK
        is_loopback = Listen(host=host, port=0).is_loopback
        given = entry["sasl"]
        usable = {"PLAIN": self._has_passwords, "EXTERNAL": self._has_users}
        has_login = any(usable.get(each) for each in (MECHANISMS if given is None else given))
        is_open = not read.get("authenticatePeer") and (given is None or "ANONYMOUS" in given)
        if is_loopback or not is_open:
            closes = not (has_login or is_open)
            if closes:
                read.note(
                    "saslMechanisms", f"not opened, because nobody can log in; {USERS_EXPECTED}"
                )
            return closes
        if has_login and given is not None:
            entry["sasl"] = [each for each in given if each != "ANONYMOUS"]
            read.note("saslMechanisms", "ANONYMOUS is not offered to other machines")
        elif not has_login:
            entry["host"] = LOOPBACK_6 if ":" in host else LOOPBACK
            entry["sasl"] = ["ANONYMOUS"]
            text = f"listens on {entry['host']} only, because there is no login"
            read.note("host" if read.has("host") else "addr", f"{text}; {USERS_EXPECTED}")
        return False

    def _add(
        self,
        table: str,
        read: _Read,
        entry: dict[str, Any],
        names: dict[str, str] | None = None,
    ) -> None:
        """Add an entry to an array of tables; `names` are keys that are called otherwise there."""
        entries = self._result.document.setdefault(table, [])
        path: Path = (table, len(entries))
        entries.append({key: value for key, value in entry.items() if value is not None})
        places = self._result.places
        places[path] = (read.block.line, read.block.name)
        for name, line in read.lines.items():
            key = (names or {}).get(name, name)
            places.setdefault((*path, key), (line, f"{read.block.name}.{name}"))

    def _stands_already(
        self, table: str, read: _Read, entry: dict[str, Any], keys: tuple[str, ...]
    ) -> bool:
        """Return whether an entry for the same is there already, which holds as in a router."""
        place = [_bare(entry.get(key)) for key in keys]
        for at, known in enumerate(self._result.document.get(table, ())):
            if any(place) and [_bare(known.get(key)) for key in keys] == place:
                line = self._result.places[(table, at)][0]
                read.note(keys[0], f"ignored, because line {line} already sets this")
                return True
        return False

    def _set_limit(self, read: _Read, name: str, limit: _Limit) -> None:
        """Set a bound of the container's: the widest of those of its listeners."""
        limits = self._result.document.setdefault("limits", {})
        wanted = read.get(name)
        value = min(max(wanted, limit.least), limit.most)
        if value != wanted:
            if name == "idleTimeoutSeconds":  # 0 is never
                read.note(name, MEANINGLESS)
                return
            read.note(name, f"using {value}, the nearest allowed value")
        known = limits.setdefault(limit.name, value)
        if known != value:
            value = limits[limit.name] = max(known, value)
            read.note(name, f"applies to the whole container: using {value}, the larger value")
        place = (read.lines[name], f"{read.block.name}.{name}")
        self._result.places.setdefault(("limits", limit.name), place)

    def _set(self, table: str, key: str, read: _Read, name: str) -> None:
        """Set what there is only one of; another block may say the same, and nothing else."""
        document = self._result.document
        into = document.setdefault(table, {}) if table else document
        value = read.get(name)
        if into.setdefault(key, value) != value:
            read.fail(name, str(value), f"{into[key]}, as before: it is one for the container")
        path: Path = (table, key) if table else (key,)
        self._result.places.setdefault(path, (read.lines[name], f"{read.block.name}.{name}"))


def _bare(name: str | None) -> str | None:
    """Write a prefix or a pattern without what means nothing at its ends."""
    return None if name is None else name.removeprefix("/").rstrip("/.")


def _distributed(distribution: str) -> dict[str, str]:
    """Write a distribution as keys of `[[address]]`."""
    if distribution == UNAVAILABLE:
        return {"kind": UNAVAILABLE}
    return {"distribution": distribution}


def _tls_of(profile: _Read) -> dict[str, str]:
    """Write an sslProfile as the files of `[listen.tls]`."""
    files = {
        "certificate": profile.get("certFile"),
        "key": profile.get("privateKeyFile", "keyFile"),
        "client_ca": profile.get("caCertFile", "certDb"),
    }
    return {key: name for key, name in files.items() if name is not None}
