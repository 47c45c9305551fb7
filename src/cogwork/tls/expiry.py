"""Certificates that expire: told when they are loaded, and once a day for as long as they are used.

Theory of operation. Each TLS context that reads certificates from files has the ends of their
validity remembered for as long as it lives. A certificate that has expired, or does within two
weeks, is a warning. The chain that is shown counts one by one; of authorities that are trusted
only the one that lasts longest counts, as bundles have expired ones, too. What is loaded counts,
not what the file has by now: a file that was renewed and not read again is no help.

A certificate is read as far as its validity (RFC 5280 §4.1): the standard library decodes
those of a peer and of authorities only.
"""

from __future__ import annotations

import logging
import re
import time
from base64 import b64decode
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ("EXPIRY", "Expiry", "ends_of", "ends_of_lists")

DAY_S = 86_400.0
WARN_S = 14 * DAY_S

CERTIFICATES_MAX = 10_000
"""In one file: the system's bundle has some hundred."""

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_CRL_PEM = re.compile(rb"-----BEGIN X509 CRL-----(.+?)-----END X509 CRL-----", re.DOTALL)
_INTEGER, _SEQUENCE, _UTC_TIME, _GENERALIZED_TIME, _VERSION = 0x02, 0x30, 0x17, 0x18, 0xA0
_TIMES = (_UTC_TIME, _GENERALIZED_TIME)
_YEARS_OF_1900 = 50
"""A year of two digits from this one on is of 19xx (RFC 5280 §4.1.2.5.1)."""

log = logging.getLogger("cogwork")


@dataclass(frozen=True, slots=True)
class _Held:
    """A certificate that a context has read.

    Attributes:
        what: What it is, with its file.
        end_s: When it expires, in seconds since 1970 (UTC).
        warn_s: For how long before that it is told of.
        remedy: What is to be done.
    """

    what: str
    end_s: float
    warn_s: float = WARN_S
    remedy: str = "put a new one in its place, and reload"

    def problem(self, now_s: float) -> str:
        """Say that it has expired, or soon does; empty where neither is so."""
        left_s = self.end_s - now_s
        if left_s >= self.warn_s:
            return ""
        day = datetime.fromtimestamp(self.end_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
        if left_s <= 0:
            return f"{self.what} has expired on {day}: {self.remedy}"
        days = int(left_s // DAY_S)
        left = f"in {days} day{'' if days == 1 else 's'}" if days else "today"
        return f"{self.what} expires {left}, on {day}: {self.remedy}"


class Expiry:
    """What the TLS contexts of this process have read."""

    def __init__(self) -> None:
        """Initialize it; it knows none."""
        self._held: WeakKeyDictionary[ssl.SSLContext, list[_Held]] = WeakKeyDictionary()
        self._due_s = inf

    def shown(self, context: ssl.SSLContext, file: Path, now_s: float | None = None) -> None:
        """Take note of a certificate and its chain, which a context shows.

        Args:
            context: Has them loaded.
            file: The PEM file.
            now_s: The time, in seconds since 1970 (UTC); None for now.
        """
        found = [
            _Held(f"the certificate {file}" if not at else f"certificate {at + 1} of {file}", end_s)
            for at, end_s in enumerate(ends_of(file))
        ]
        self._take(context, found, now_s)

    def trusted(self, context: ssl.SSLContext, file: Path, now_s: float | None = None) -> None:
        """Take note of the authorities that a context trusts."""
        ends = ends_of(file)
        what = f"each authority in {file}" if ends[1:] else f"the authority {file}"
        self._take(context, [_Held(what, max(ends))] if ends else [], now_s)

    def revoking(self, context: ssl.SSLContext, file: Path, now_s: float | None = None) -> None:
        """Take note of revocation lists: they are renewed every few days, often on the last one."""
        what, remedy = f"the revocation list {file}", "until it is renewed, nobody is trusted by it"
        found = [_Held(what, end_s, 0.0, remedy) for end_s in ends_of_lists(file)]
        self._take(context, found, now_s)

    def forget(self, context: ssl.SSLContext) -> None:
        """Speak of a context no more: another one has taken its place for new connections."""
        self._held.pop(context, None)

    def _take(self, context: ssl.SSLContext, found: list[_Held], now_s: float | None) -> None:
        at_s = time.time() if now_s is None else now_s
        self._held.setdefault(context, []).extend(found)
        if found:
            self._due_s = min(self._due_s, at_s + DAY_S)
        _tell(found, at_s)

    def remind(self, now_s: float | None = None) -> None:
        """Tell again what has expired or soon does, once a day; call it as often as is convenient.

        Args:
            now_s: The time, in seconds since 1970 (UTC); None for now.
        """
        at_s = time.time() if now_s is None else now_s
        if at_s < self._due_s:
            return
        self._due_s = at_s + DAY_S
        _tell([held for each in list(self._held.values()) for held in each], at_s)

    def days_left(self, now_s: float | None = None) -> int | None:
        """Return the days until the first certificate expires, below 0 where one has.

        None where there is none.
        """
        at_s = time.time() if now_s is None else now_s
        ends = [held.end_s for each in list(self._held.values()) for held in each]
        return int((min(ends) - at_s) // DAY_S) if ends else None


EXPIRY = Expiry()
"""Of this process."""


def _tell(found: list[_Held], now_s: float) -> None:
    for problem in dict.fromkeys(held.problem(now_s) for held in found):
        if problem:
            log.warning("%s", problem)


def ends_of(file: Path) -> list[float]:
    """Return when the certificates in a PEM file expire; what cannot be read is passed over."""
    return list(_ends(file, _PEM, _end_of))


def ends_of_lists(file: Path) -> list[float]:
    """Return when the revocation lists in a PEM file expire; one may be for good."""
    return list(_ends(file, _CRL_PEM, _end_of_list))


def _ends(
    file: Path, pattern: re.Pattern[bytes], end_of: Callable[[bytes], float]
) -> Iterator[float]:
    try:
        data = file.read_bytes()
    except OSError:
        return
    for each, _ in zip(pattern.finditer(data), range(CERTIFICATES_MAX), strict=False):
        try:
            yield end_of(b64decode(each[1]))
        except (ValueError, IndexError, OverflowError):
            continue


def _end_of(certificate: bytes) -> float:
    """Return when a certificate expires.

    Raises:
        ValueError: It is none.
        IndexError: It is cut short.
    """
    ((_, whole),) = list(_elements(certificate))[:1]
    _, signed = next(iter(_elements(whole)))
    fields = [each for each in _elements(signed) if each[0] != _VERSION]
    (serial, _), _, _, (kind, validity) = fields[:4]  # with algorithm and issuer between
    if serial != _INTEGER or kind != _SEQUENCE:
        raise ValueError("no certificate")
    _, (kind, end) = list(_elements(validity))[:2]
    return _time(kind, end.decode("ascii"))


def _end_of_list(signed_list: bytes) -> float:
    """Return when a revocation list expires (RFC 5280 §5.1.2.5).

    Raises:
        ValueError: It is none, or does not say.
        IndexError: It is cut short.
    """
    ((_, whole),) = list(_elements(signed_list))[:1]
    _, signed = next(iter(_elements(whole)))
    times = [each for each in list(_elements(signed))[:6] if each[0] in _TIMES]
    _, (kind, end) = times[:2]
    return _time(kind, end.decode("ascii"))


def _time(kind: int, text: str) -> float:
    """Read a time in UTC (RFC 5280 §4.1.2.5)."""
    if kind == _UTC_TIME:
        text = ("19" if int(text[:2]) >= _YEARS_OF_1900 else "20") + text
    elif kind != _GENERALIZED_TIME:
        raise ValueError("no time")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tags and contents of what stands one after the other in DER (X.690 §8.1)."""
    at = 0
    while at < len(data):
        tag, size = data[at], data[at + 1]
        at += 2
        if size & 0x80:
            count = size & 0x7F
            size = int.from_bytes(data[at : at + count], "big")
            at += count
        if at + size > len(data):
            raise ValueError("an element is cut short")
        yield tag, data[at : at + size]
        at += size
