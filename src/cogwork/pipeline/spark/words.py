"""Words of options: numbers, truths, times and lists, each refused in one line."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cogwork.client.connection.certificates import Certificates
from cogwork.client.connection.tokens import TokenFile
from cogwork.client.connection.url import endpoints_of
from cogwork.pipeline.spark.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = (
    "CERTIFICATES",
    "TOKEN_FILE",
    "certificates_in",
    "count_in",
    "known_only",
    "names_in",
    "offsets_in",
    "size_in",
    "stream_name",
    "time_us_in",
    "token_in",
    "truth_in",
)

EARLIEST = -2
LATEST = -1
"""What Kafka's connector writes for them in JSON."""

CERTIFICATES = ("tlsCaFile", "tlsCertFile", "tlsKeyFile")
TOKEN_FILE = "tokenFile"  # the name of an option

NUMBER_MAX = 2**63 - 1
"""What Spark's longs hold, and so an offset."""

SIZE_UNITS = "bkmgtp"
SIZE = re.compile(rf"(\d+)\s*(?:([{SIZE_UNITS}])b?)?", re.ASCII | re.IGNORECASE)

STREAMS = "stream/"

TRUTHS = {"true": True, "false": False}

PLACES = {"earliest": EARLIEST, "latest": LATEST}

OF_SPARK = frozenset({"checkpointlocation", "queryname", "path"})
"""Options that Spark itself adds, or reads."""


def known_only(options: Mapping[str, str], known: Iterable[str]) -> None:
    """Refuse options that nobody knows.

    Raises:
        OptionError: There is one.
    """
    allowed = {name.lower() for name in known} | OF_SPARK
    unknown = sorted(name for name in options if name.lower() not in allowed)
    if unknown:
        raise OptionError(f"unknown option {unknown[0]!r}: there are {', '.join(sorted(known))}")


def certificates_in(options: Mapping[str, str]) -> Certificates:
    """Read which files TLS uses; they are opened where a connection is made.

    Raises:
        OptionError: A key has no certificate.
    """
    found = Certificates(*(options.get(name) for name in CERTIFICATES))
    if found.key_file is not None and found.cert_file is None:
        raise OptionError("tlsKeyFile needs tlsCertFile, the certificate that the key is of")
    return found


def token_in(options: Mapping[str, str]) -> TokenFile | None:
    """Read which file holds the token to log in by; it is opened where a connection is made.

    Raises:
        OptionError: There is no name in it, or a password beside it.
    """
    name = options.get(TOKEN_FILE)
    if name is None:
        return None
    if not name:
        raise OptionError(f"{TOKEN_FILE} names no file")
    if any(each.password for each in endpoints_of(options.get("url", ""))):
        raise OptionError(f"{TOKEN_FILE} and a password in the url: use one of them")
    return TokenFile(name)


def count_in(options: Mapping[str, str], name: str) -> int | None:
    """Read a whole number above 0; None where the option is not given.

    Raises:
        OptionError: It is none, or a larger one than a stream has offsets.
    """
    text = options.get(name)
    if text is None:
        return None
    number = _number_in(text)
    if not number:
        raise OptionError(f"{name} is a whole number above 0, below 2**63, not {text!r:.40}")
    return number


def size_in(options: Mapping[str, str], name: str) -> int | None:
    """Read a number of bytes, with Spark's units; None where the option is not given.

    Raises:
        OptionError: It is none, or too large.
    """
    text = options.get(name)
    if text is None:
        return None
    match = SIZE.fullmatch(text.strip())
    if match is not None and match[1].strip("0"):
        number = _number_in(match[1])
        size = (number or 0) << 10 * SIZE_UNITS.index((match[2] or "b").lower())
        if number is None or size > NUMBER_MAX:
            raise OptionError(f"{name} is too large: {text[:40]!r} (expected at most 8191p)")
        return size
    raise OptionError(
        f"{name}: {text[:40]!r} is not a size (expected bytes above 0, or such as 512k, 20m, 1g)"
    )


def stream_name(text: str) -> str:
    """Return the name of a stream that may be written as its address."""
    return text.removeprefix("/").removeprefix(STREAMS)


def _number_in(text: str) -> int | None:
    """Read a number as large as an offset can be; None where it is none, or a larger one."""
    if not text.isascii() or not text.isdigit():
        return None
    digits = text.lstrip("0") or "0"  # Python refuses to read thousands of them
    if len(digits) > len(str(NUMBER_MAX)):
        return None
    return number if (number := int(digits)) <= NUMBER_MAX else None


def truth_in(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Read `true` or `false`."""
    text = options.get(name)
    if text is None:
        return default
    if text.lower() not in TRUTHS:
        raise OptionError(f"{name} is true or false, not {text!r:.40}")
    return TRUTHS[text.lower()]


def names_in(text: str) -> tuple[str, ...]:
    """Read names between commas."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def offsets_in(name: str, text: str) -> int | dict[str, int]:
    """Read an offset, `earliest`, `latest`, or JSON with one of these for each stream.

    Returns:
        The offset, or those by stream's name; `EARLIEST` and `LATEST` are negative.

    Raises:
        OptionError: It is none of these.
    """
    text = text.strip()
    if text.lower() in PLACES:
        return PLACES[text.lower()]
    number = _number_in(text)
    if number is not None:
        return number
    try:
        found = json.loads(text)
        if isinstance(found, dict):
            return {key: _offset_of(value) for key, value in found.items()}
    except (ValueError, RecursionError):
        pass
    raise OptionError(
        f"{name} is earliest, latest, an offset, or JSON such as "
        f'{{"orders": 23, "invoices": -2}}, not {text!r:.60}'
    )


def _offset_of(value: object) -> int:
    if isinstance(value, str) and value in PLACES:
        return PLACES[value]
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(value)
    if not EARLIEST <= value <= NUMBER_MAX:
        raise ValueError(value)
    return value


def time_us_in(options: Mapping[str, str], name: str) -> int | None:
    """Read milliseconds since 1970, or ISO 8601, in UTC where it names no zone.

    Returns:
        Microseconds since 1970; None where the option is not given.

    Raises:
        OptionError: It is no time, or one that is too far away.
    """
    text = options.get(name)
    if text is None:
        return None
    number = _number_in(text)
    if number is not None and number <= NUMBER_MAX // 1000:
        return number * 1000
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(
            f"{name} is in milliseconds since 1970, or such as 2026-11-20T06:00, not {text!r:.40}"
        ) from None
    return us_of(at)


def us_of(at: datetime) -> int:
    """Return microseconds since 1970; a time without a zone is in UTC."""
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
