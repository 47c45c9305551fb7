"""What a redirect means to a client: the endpoints that it names, in order.

An endpoint that a redirect names keeps what the one that redirects has: user and password, virtual
host, and the scheme unless another is named. Never does TLS end on the way: whoever asked for it
gets it, or an error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.errors import AmqpError, Condition, ProtocolError
from cogwork.amqp.redirect import Redirect
from cogwork.client.connection.url import SCHEMES
from cogwork.client.errors import ConnectError

if TYPE_CHECKING:
    from cogwork.client.connection.url import Endpoint

__all__ = ("Redirected", "Redirection", "redirection_of")


class Redirection(NamedTuple):
    """Where a container sends a client.

    Attributes:
        endpoints: To be tried in this order; at least one.
        address: What a redirected link is to be attached to there; None for the same address.
    """

    endpoints: list[Endpoint]
    address: str | None = None

    def __str__(self) -> str:
        """Name the endpoint to try first."""
        return str(self.endpoints[0])


class Redirected(ConnectError):
    """A container took no connection, but said where to go.

    Attributes:
        redirection: Where that is.
    """

    condition = Condition.CONNECTION_REDIRECT

    def __init__(self, origin: Endpoint, redirection: Redirection) -> None:
        super().__init__(f"{origin}: redirects to {redirection}")
        self.redirection = redirection


def redirection_of(origin: Endpoint, error: AmqpError) -> Redirection:
    """Read a redirect.

    Args:
        origin: Who sends us away.
        error: The error that says where to.

    Raises:
        ConnectError: It says nothing that can be followed.
    """
    try:
        redirect = Redirect.from_error(error)
    except ProtocolError as problem:
        raise _unfollowed(origin, problem.description) from problem
    # Whoever is reached at a path names hosts and ports, which say no more than what they speak.
    scheme = redirect.scheme or ("amqp" if origin.is_unix else origin.scheme)
    if scheme not in SCHEMES:
        raise _unfollowed(origin, f"a redirect's scheme: {scheme!r:.80} is none that is spoken")
    first = replace(
        origin,
        scheme=scheme,
        host=redirect.target.name,
        port=redirect.target.port,
        known_as=redirect.hostname or "",
    )
    if origin.is_encrypted and not first.is_encrypted:
        raise _unfollowed(origin, f"it redirects to {first}, where nothing is encrypted")
    others = [
        replace(first, host=host.name, port=host.port, known_as="") for host in redirect.known_hosts
    ]
    return Redirection([first, *others], redirect.address)


def _unfollowed(origin: Endpoint, reason: str) -> ConnectError:
    made = ConnectError(f"{origin}: {reason}")
    made.condition = Condition.CONNECTION_REDIRECT
    return made
