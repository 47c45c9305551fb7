"""Whether a configuration has the container dial only what `[dial]` lists."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cogwork.config.engine_checks import places_of
from cogwork.config.link_urls import BadLinkUrl
from cogwork.config.oauth_checks import is_url
from cogwork.config.problems import Problem
from cogwork.io.places import Places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.config.settings import Configuration

__all__ = ("check_dialled",)

_PORTS = {"http": 80, "https": 443}


def check_dialled(configuration: Configuration) -> Iterator[Problem]:
    """Find what is no place in the list, and what is dialled and not listed."""
    if configuration.dial is None:
        return
    for at, text in enumerate(configuration.dial.allow):
        try:
            Places([text])
        except ValueError as error:
            expected = 'a network, a name or a path, such as "10.0.0.0/8" or "*.example.org:5671"'
            yield Problem(("dial", "allow", at), f'"{text:.80}", where {error}', expected)
            return
    yield from _unlisted(configuration, Places(configuration.dial.allow))


def _unlisted(configuration: Configuration, places: Places) -> Iterator[Problem]:
    expected = "a place that dial.allow lists"
    for at, link in enumerate(configuration.links):
        with suppress(BadLinkUrl):  # which is told of elsewhere
            target = link.target
            if not link.is_to_worker and not places.hold(target.host, target.port):
                yield Problem(("link", at, "url"), f'"{target}"', expected)
    for at, engine in enumerate(configuration.engines):
        for option, host, port in places_of(engine):
            if not places.hold(host, port):  # what it is may be a part of a password
                yield Problem(("engine", at, "options", option), "another place", expected)
    oauth = configuration.oauth
    if oauth is not None and is_url(oauth.jwks):
        parts = urlsplit(oauth.jwks)
        if not places.hold(parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)):
            yield Problem(("oauth", "jwks"), f'"{oauth.jwks:.80}"', expected)
