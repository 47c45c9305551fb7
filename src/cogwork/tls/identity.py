"""Whom a verified certificate names, for SASL EXTERNAL.

Theory of operation. One kind of name in the certificate is chosen by the configuration. Where there
are several of that kind, and no mapping says what they stand for, the certificate names nobody: to
pick one would be to guess. In a pattern `*` stands for characters of one part of a name, never for
what separates parts, so that `*.a.example` is no name of `x.y.a.example`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ("IdentityFrom", "common_name", "identity_of", "names_of")

IdentityFrom = Literal["cn", "dn", "san-dns", "san-email", "san-uri"]

_SAN = {"san-dns": "DNS", "san-email": "email", "san-uri": "URI"}
_SEPARATORS = {"cn": ".", "dn": ",+\\", "san-dns": ".", "san-email": "@", "san-uri": "/"}

_ATTRIBUTES = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
"""Short names (RFC 4514 §3); others are written as the library calls them."""

_SPECIAL = re.compile(r'([,+"\\<>;])')


def identity_of(
    certificate: Mapping[str, object], kind: IdentityFrom, users: Mapping[str, str] | None = None
) -> str | None:
    """Return the user that a certificate stands for.

    Args:
        certificate: A verified one, as `ssl.SSLObject.getpeercert` tells it.
        kind: Which of its names counts.
        users: Users by patterns of such names, the first that fits holds; None or empty takes the
            name itself.

    Returns:
        None where there is no such name, none that fits, or several that stand for several users.
    """
    names = names_of(certificate, kind)
    if users:
        found = {user for name in names if (user := _user_of(name, kind, users)) is not None}
    else:
        found = set(names)
    return found.pop() if len(found) == 1 else None


def names_of(certificate: Mapping[str, object], kind: IdentityFrom) -> list[str]:
    """Return the names of one kind in a certificate, without empty ones."""
    if kind in _SAN:
        wanted = _SAN[kind]
        pairs = certificate.get("subjectAltName", ())
        assert isinstance(pairs, tuple)
        return [value for key, value in pairs if key == wanted and value]
    subject = certificate.get("subject", ())
    assert isinstance(subject, tuple)
    if kind == "cn":
        return [value for part in subject for key, value in part if key == "commonName" and value]
    return [",".join(_written(subject))] if subject else []


def common_name(certificate: Mapping[str, object]) -> str | None:
    """Return the common name of a certificate; None without one, or with several."""
    return identity_of(certificate, "cn")


def _written(subject: tuple[tuple[tuple[str, str], ...], ...]) -> Iterator[str]:
    """Write the parts of a distinguished name, the most specific first (RFC 4514 §2)."""
    for part in reversed(subject):
        yield "+".join(f"{_ATTRIBUTES.get(key, key)}={_escaped(value)}" for key, value in part)


def _escaped(value: str) -> str:
    """Escape what would end a value (RFC 4514 §2.4)."""
    text = _SPECIAL.sub(r"\\\1", value).replace("\0", "\\00")
    if text.startswith(("#", " ")):
        text = f"\\{text}"
    if text.endswith(" ") and not text.endswith("\\ "):
        text = f"{text[:-1]}\\ "
    return text


def _user_of(name: str, kind: IdentityFrom, users: Mapping[str, str]) -> str | None:
    return next(
        (user for each, user in users.items() if _pattern(each, kind).fullmatch(name)), None
    )


@cache
def _pattern(text: str, kind: IdentityFrom) -> re.Pattern[str]:
    """Compile a pattern: everything but `*` stands for itself; names of hosts ignore case."""
    one = f"[^{re.escape(_SEPARATORS[kind])}]+"
    # Runs of one class cannot backtrack beyond the separators, and adjacent ones are one.
    parts = re.split(r"\*+", text)
    flags = re.IGNORECASE if kind == "san-dns" else re.NOFLAG
    return re.compile(one.join(map(re.escape, parts)), flags)
