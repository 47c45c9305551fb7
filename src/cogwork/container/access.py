"""Who may connect, and do what: SASL on a container's side, and permissions by address."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition, ProtocolError
from cogwork.amqp.sasl import EXTERNAL, SaslCode
from cogwork.container.permissions import Permissions, permissions_of
from cogwork.container.reply_addresses import is_reply_address
from cogwork.container.revocation import revoked_logins
from cogwork.container.users import PasswordChecker
from cogwork.container.verifiers import Verifiers, kept_secret
from cogwork.router.mesh.bounds import ADDRESS_BYTES_MAX
from cogwork.sasl.mechanisms import MECHANISMS
from cogwork.sasl.sides import Challenge, Failure, ServerContext, Success

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from cogwork.amqp.sasl import SaslInit
    from cogwork.amqp.types import Symbol
    from cogwork.container.clients import ClientContext
    from cogwork.container.settings import Configuration
    from cogwork.dataplane.connection import Connection
    from cogwork.sasl.sides import Mechanism, ServerSide, Step
    from cogwork.sasl.verifier import Verifier

__all__ = ("Access", "Permits")

log = logging.getLogger("cogwork")


class Permits(dict[bytes, bool]):
    """What messages that name their address themselves may be sent to, decided once for each.

    Those of one connection: so many links as there may be of it share what is remembered.
    """

    def __init__(self, permissions: Permissions, vhost: str | None) -> None:
        super().__init__()
        self._permissions = permissions
        self._vhost = vhost
        self._bytes_left = PERMITS_BYTES_MAX
        self._has_told = False

    def __missing__(self, address: bytes) -> bool:
        """Decides, and remembers for as long as there is room."""
        if len(address) > ADDRESS_BYTES_MAX:  # it leads nowhere
            return False
        name = address.decode(errors="replace")
        allowed = is_reply_address(name) or self._permissions.allows("send", name, self._vhost)
        if not allowed and not self._has_told:
            self._has_told = True  # once: addresses are whatever a client makes up
            log.warning(
                "a client has no permission to send to %.200r: its messages there are rejected, "
                "or dropped if they are settled",
                name,
            )
        size_bytes = len(address) + PERMIT_BYTES
        if size_bytes <= self._bytes_left:
            self._bytes_left -= size_bytes
            self[address] = allowed
        return allowed


PERMITS_BYTES_MAX = 1 << 20
"""For the decisions of one connection: some ten thousand."""

PERMIT_BYTES = 64
"""What a decision takes beside the address, about."""


@dataclass(slots=True)
class _Login:
    """One exchange with a peer that has not logged in yet.

    Attributes:
        mechanism: Which.
        side: The container's part.
        task: Waits for a step that takes long; None while the peer has to say something.
    """

    mechanism: Symbol
    side: ServerSide
    task: asyncio.Task[None] | None = None


class Access:
    """Decides over logins and permissions."""

    def __init__(self, configuration: Configuration) -> None:
        """Reads the users.

        Args:
            configuration: With `[[user]]` and `[anonymous]`.

        Raises:
            PasswordHashError: A hash is malformed.
            VerifierError: A SCRAM verifier is malformed.
        """
        self._configuration = configuration
        self._passwords = PasswordChecker(configuration.users)
        self._verifiers = Verifiers(configuration.users, kept_secret(None))
        self._logins: dict[Connection, _Login] = {}
        self._known: dict[str | None, Permissions] = {}

    def replace(self, configuration: Configuration) -> dict[str, str]:
        """Takes over another configuration's users, for logins and rights from now on.

        Returns:
            Why the logins of users hold no longer, by their names.
        """
        fresh = Verifiers(configuration.users, self._verifiers.secret)
        self._passwords.replace(configuration.users)
        self._verifiers = fresh
        revoked = revoked_logins(self._configuration.users, configuration.users)
        self._configuration = configuration
        self._known.clear()
        return revoked

    def keep_secrets(self, directory: Path) -> None:
        """Keeps what only the container may know on the disk, so that restarts tell nothing.

        Args:
            directory: Where.
        """
        self._verifiers = Verifiers(self._configuration.users, kept_secret(directory))

    def offered(self, mechanisms: tuple[Symbol, ...], client: ClientContext) -> tuple[Symbol, ...]:
        """Lists those by which a peer may log in.

        EXTERNAL is for who has shown a certificate, SCRAM where users have verifiers, and what is
        bound to a channel where there is one that can be bound to.

        Args:
            mechanisms: Those of the listener.
            client: Whose connection it is.
        """
        has_shown = client.certificate_name is not None
        able = tuple(each for each in mechanisms if self._is_able(MECHANISMS[each], client))
        others = tuple(each for each in able if each != EXTERNAL)
        return able if has_shown or not others else others

    def _is_able(self, mechanism: Mechanism, client: ClientContext) -> bool:
        has_verifiers = mechanism.hash_name is None or self._verifiers.has(mechanism.hash_name)
        return has_verifiers and (client.end_point is not None or not mechanism.binds)

    def authenticate(
        self,
        connection: Connection,
        init: SaslInit,
        offered: tuple[Symbol, ...],
        client: ClientContext,
    ) -> None:
        """Answers a client's choice of mechanism, now or when its password has been checked.

        Raises:
            ProtocolError: Its response is malformed.
        """
        if init.mechanism not in offered:
            connection.sasl_done(SaslCode.AUTH)
            return
        context = ServerContext(
            users=self,
            offered=offered,
            certificate_name=client.certificate_name,
            end_point=client.end_point,
        )
        login = _Login(init.mechanism, MECHANISMS[init.mechanism].server(context))
        self._logins[connection] = login
        self._take(connection, login, init.initial_response)

    def respond(self, connection: Connection, response: bytes) -> None:
        """Goes on with a login that the client was asked more for.

        Raises:
            ProtocolError: It was not asked, or its response is malformed.
        """
        login = self._logins.get(connection)
        if login is None or login.task is not None:
            raise ProtocolError(Condition.NOT_ALLOWED, "no challenge was sent")
        self._take(connection, login, response)

    def _take(self, connection: Connection, login: _Login, response: bytes | None) -> None:
        step = login.side.respond(response)
        if isinstance(step, (Challenge, Success, Failure)):
            self._go_on(connection, login, step)
        else:
            later = self._go_on_later(connection, login, step)
            login.task = asyncio.get_running_loop().create_task(later)

    async def _go_on_later(
        self, connection: Connection, login: _Login, step: Callable[[], Awaitable[Step]]
    ) -> None:
        try:
            taken = await step()
            login.task = None
            self._go_on(connection, login, taken)
        except ProtocolError as error:
            connection.on_violation(error.condition, error.description)
        connection.flush()

    def _go_on(self, connection: Connection, login: _Login, step: Step) -> None:
        if isinstance(step, Challenge):
            connection.sasl_challenge(step.data)
            return
        self._logins.pop(connection, None)  # a refusal ends the connection, and not this
        if isinstance(step, Success):
            connection.sasl_done(SaslCode.OK, step.identity, step.data)
            return
        if not step.is_temporary:
            log.warning(
                "refused a login as %.80r by %s: %s", step.user, login.mechanism, step.reason
            )
        connection.sasl_done(SaslCode.SYS_TEMP if step.is_temporary else SaslCode.AUTH)

    # -- what the mechanisms ask

    def has(self, name: str) -> bool:
        """Tells whether there is such a user."""
        return any(user.name == name for user in self._configuration.users)

    async def check(self, name: str, password: str) -> bool:
        """Tells whether the user exists and the password is theirs.

        Raises:
            LoginBusyError: Too many checks wait already.
        """
        return await self._passwords.check(name, password)

    def verifier(self, hash_name: str, name: str) -> tuple[Verifier, str | None]:
        """Returns a user's verifier and configured name; a decoy and None where there is none."""
        return self._verifiers.of(hash_name, name)

    # -- what connections may do

    def is_container(self, identity: str | None) -> bool:
        """Tells whether a peer may be another container."""
        if identity is None:
            told = self._configuration.anonymous.mesh
            # Who links reads and sends everywhere, whatever a client without a name may do.
            vhosts = (None, *(each.name for each in self._configuration.vhosts))
            return all(map(self.permissions(None).are_all, vhosts)) if told is None else told
        return any(user.name == identity and user.mesh for user in self._configuration.users)

    def why_not_container(self, identity: str | None, container_id: str) -> str | None:
        """Tells why a peer may not be the container of an id; None where it may.

        Args:
            identity: The user that the peer proved to be.
            container_id: What it says that it is.
        """
        owners = [
            user.name
            for user in self._configuration.users
            if user.containers is not None and container_id in user.containers
        ]
        if owners and identity not in owners:
            return f"the id {container_id!r:.80} is another user's"
        mine = next((each for each in self._configuration.users if each.name == identity), None)
        if mine is not None and mine.containers is not None and not owners:
            return f"user {identity!r:.80} may not be container {container_id!r:.80}"
        return None

    def is_logging_in(self, connection: Connection) -> bool:
        """Tells whether a peer's password is being checked."""
        return connection in self._logins

    def forget(self, connection: Connection) -> None:
        """Gives up the login of a peer that has gone: those behind it need not wait for that."""
        login = self._logins.pop(connection, None)
        if login is not None and login.task is not None:
            login.task.cancel()

    def permissions(self, identity: str | None) -> Permissions:
        """Returns what a connection's peer may do; a user that has gone may do nothing."""
        known = self._known.get(identity)
        if known is None:
            known = permissions_of(self._configuration, identity) or Permissions(())
            self._known[identity] = known
        return known

    def close(self) -> None:
        """Stops the password threads; logins under way are given up."""
        for connection in list(self._logins):
            self.forget(connection)
        self._passwords.close()
