"""What is wrong with an `[oauth]`, and where its keys are, for who need not load the library."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cogwork.amqp.loopback import is_loopback
from cogwork.config.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.config.oauth_settings import OAuth

__all__ = ("check_oauth", "is_url")


def is_url(jwks: str) -> bool:
    """Tell whether keys come by a URL, and not from a file."""
    return "://" in jwks


def check_oauth(oauth: OAuth) -> Iterator[Problem]:
    """Find contradictions in an `[oauth]`, and what it needs and is not installed."""
    if find_spec("jwt") is None or find_spec("cryptography") is None:
        yield Problem((), "a table that needs the extra", "pip install 'cogwork[auth]'")
    if is_url(oauth.jwks):
        yield from _url(oauth.jwks)
    elif oauth.ca is not None:
        yield Problem(("ca",), "authorities for a file", "jwks = an https:// URL with them")
    for value, group in oauth.groups.items():
        if not value or not group:
            yield Problem(("groups", value), f'"{group:.80}"', "a claim's value and a group's name")
    if oauth.groups and oauth.groups_claim is None:
        yield Problem(
            ("groups",), "a table without groups_claim", "the claim that they are read in"
        )


def _url(jwks: str) -> Iterator[Problem]:
    """Check that nobody in between can put keys of their own in the place of the issuer's."""
    try:
        parts = urlsplit(jwks)
        host, has_login, _ = parts.hostname, "@" in parts.netloc, parts.port
    except ValueError:
        host, has_login = None, False
    if has_login:
        yield Problem(("jwks",), "a URL with a user", "one without: keys are public")
        return
    is_private = host is not None and (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    )
    if not is_private:
        expected = "a file, an https:// URL, or an http:// URL on this machine"
        yield Problem(("jwks",), f'"{jwks:.80}"', expected)
