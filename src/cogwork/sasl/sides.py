"""The two sides of a SASL mechanism, and what they may know of their surroundings.

Theory of operation. A mechanism is one file that ends in its `Mechanism`s; a table in
`cogwork.sasl.mechanisms` lists them. A side takes one message and answers with the next. What takes
long (a hash that is slow on purpose) is returned as a function to await, so that no step holds up
an event loop; what is quick is returned as it is, so that most logins need no task.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cogwork.amqp.errors import CogworkError, Condition, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cogwork.amqp.types import Symbol
    from cogwork.sasl.verifier import Keys, Verifier

__all__ = (
    "Challenge",
    "ClientContext",
    "ClientSide",
    "Failure",
    "Grant",
    "LoginBusyError",
    "Mechanism",
    "SaslError",
    "ServerContext",
    "ServerSide",
    "Step",
    "Success",
    "TokenError",
    "Users",
)


class SaslError(ProtocolError):
    """The server's part of an exchange is wrong: it is not to be trusted with a session."""

    def __init__(self, description: str) -> None:
        super().__init__(Condition.UNAUTHORIZED_ACCESS, description)


class LoginBusyError(CogworkError):
    """Too many logins wait for their check; the peer may try again later."""


class TokenError(CogworkError):
    """A token is not valid; the message says why, without the token."""


class Grant(NamedTuple):
    """What a token stands for.

    Attributes:
        user: Who it was issued to.
        groups: The groups that its claims put the user in.
        expires_at_s: When it ends, by the wall clock.
    """

    user: str
    groups: tuple[str, ...]
    expires_at_s: float


class Challenge(NamedTuple):
    """The server asks for more."""

    data: bytes


class Success(NamedTuple):
    """The peer is who it says.

    Attributes:
        identity: Its user; None for an anonymous peer.
        data: What proves the server to the client; None where the mechanism has no such thing.
        grant: What the login is good for and for how long; None where the user's entry says it.
    """

    identity: str | None
    data: bytes | None = None
    grant: Grant | None = None


class Failure(NamedTuple):
    """The peer is refused; why, only the log says.

    Attributes:
        reason: For the log.
        user: Whom the peer gave itself out for; empty where it has not said.
        is_temporary: Whether the same login may succeed later.
    """

    reason: str
    user: str = ""
    is_temporary: bool = False


Step = Challenge | Success | Failure


class ServerSide(Protocol):
    """The server's part in one exchange."""

    def respond(self, response: bytes | None) -> Step | Callable[[], Awaitable[Step]]:
        """Take the initial response (None: there is none), then each further one.

        Raises:
            ProtocolError: The message is not of this mechanism.
        """


class ClientSide(Protocol):
    """The client's part in one exchange."""

    def first(self) -> bytes | None:
        """Return the initial response; None where the server speaks first."""

    def respond(self, challenge: bytes) -> bytes | Callable[[], Awaitable[bytes]]:
        """Return the answer to a challenge.

        Raises:
            SaslError: The challenge is wrong.
        """

    def finish(self, data: bytes | None) -> None:
        """Take the server's success.

        Args:
            data: What came along with it.

        Raises:
            SaslError: The server has not proved what the mechanism demands of it.
        """


class Users(Protocol):
    """What server sides ask of those who keep the users."""

    def has(self, name: str) -> bool:
        """Tell whether there is such a user."""

    async def check(self, name: str, password: str, source: str) -> bool:
        """Tell whether the user exists and the password is theirs.

        Args:
            name: As the peer gave it.
            password: As the peer gave it.
            source: Where the peer is; those of one source wait for each other.

        Raises:
            LoginBusyError: Too many checks wait already.
        """

    async def check_token(self, token: str) -> Grant:
        """Return what a token stands for.

        Args:
            token: As the peer gave it.

        Raises:
            LoginBusyError: It cannot be checked now.
            TokenError: It is not valid.
        """

    def verifier(self, hash_name: str, name: str) -> tuple[Verifier, str | None]:
        """Return a user's verifier and configured name; a decoy and None where there is none."""


@dataclass(frozen=True, slots=True)
class ServerContext:
    """What a server side may know.

    Attributes:
        users: Those who may log in.
        offered: The mechanisms that the peer could choose from.
        certificate_name: Whom the peer's verified certificate names; None without one.
        end_point: The channel binding `tls-server-end-point` (RFC 5929 §4); None without TLS.
        source: Where the peer is, as far as it counts for shares.
    """

    users: Users
    offered: tuple[Symbol, ...]
    certificate_name: str | None = None
    end_point: bytes | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class ClientContext:
    """What a client side may know.

    Attributes:
        work: Runs a function where it holds up no event loop.
        user: Who logs in; None for nobody in particular.
        password: The user's.
        token: What the user was issued; None without.
        has_certificate: Whether this side can show one.
        is_private: Whether nobody can read along: TLS, or this machine.
        trace: What an anonymous peer says of itself (RFC 4505).
        end_point: The channel binding `tls-server-end-point`; None where there is none.
        offered: What the server offers.
        chosen: What may be chosen; None leaves it to the client, strongest first.
        keys: Keys that were derived before, by what they were derived from.
    """

    work: Callable[[Callable[[], Keys]], Awaitable[Keys]]
    user: str | None = None
    password: str = field(default="", repr=False)
    token: str | None = field(default=None, repr=False)
    has_certificate: bool = False
    is_private: bool = False
    trace: bytes = b"cogwork"
    end_point: bytes | None = None
    offered: tuple[Symbol, ...] = ()
    chosen: tuple[Symbol, ...] | None = None
    keys: dict[tuple[str, str, bytes, int], Keys] = field(default_factory=dict, repr=False)


class Mechanism(NamedTuple):
    """One entry of the table.

    Attributes:
        name: As SASL frames have it.
        server: Makes the server's side of an exchange.
        client: Makes the client's side; None where the client has not what the mechanism takes.
        user_of: Finds in an initial response whom the peer gives itself out for; None where the
            response does not say.
        hash_name: The hash whose verifiers a user needs; None for a mechanism without.
        binds: Whether the exchange is bound to the TLS connection below it.
        has_user: Whether the name of a user goes with it.
        has_password: Whether a password goes with it, which could be guessed.
        is_password_shown: Whether the server, and who reads along, learns the password.
    """

    name: Symbol
    server: Callable[[ServerContext], ServerSide]
    client: Callable[[ClientContext], ClientSide | None]
    user_of: Callable[[bytes], str | None]
    hash_name: str | None = None
    binds: bool = False
    has_user: bool = True
    has_password: bool = True
    is_password_shown: bool = False
