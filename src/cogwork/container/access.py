"""Who may connect, and do what: SASL on a container's side, and permissions by address."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition, ProtocolError
from cogwork.amqp.sasl import ANONYMOUS, EXTERNAL, PLAIN, SaslCode, SaslInit, parse_plain
from cogwork.container.permissions import Permissions, permissions_of
from cogwork.container.users import AuthenticationBusyError, PasswordChecker
from cogwork.router.mesh.bounds import ADDRESS_BYTES_MAX

if TYPE_CHECKING:
    from cogwork.amqp.types import Symbol
    from cogwork.container.settings import Configuration
    from cogwork.dataplane.connection import Connection

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
        allowed = self._permissions.allows("send", address.decode(errors="replace"), self._vhost)
        if not allowed and not self._has_told:
            self._has_told = True  # once: addresses are whatever a client makes up
            log.warning(
                "a client has no permission to send to %.200r: its messages there are rejected, "
                "or dropped if they are settled",
                address.decode(errors="replace"),
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


class Access:
    """Decides over logins and permissions."""

    def __init__(self, configuration: Configuration) -> None:
        """Reads the users.

        Args:
            configuration: With `[[user]]` and `[anonymous]`.

        Raises:
            PasswordHashError: A hash is malformed.
        """
        self._configuration = configuration
        self._passwords = PasswordChecker(configuration.users)
        self._logins: dict[Connection, asyncio.Task[None]] = {}
        self._known: dict[str | None, Permissions] = {}

    def replace(self, configuration: Configuration) -> None:
        """Takes over another configuration's users, for logins and rights from now on."""
        self._passwords.replace(configuration.users)
        self._configuration = configuration
        self._known.clear()

    def authenticate(
        self,
        connection: Connection,
        init: SaslInit,
        offered: tuple[Symbol, ...],
        certificate_name: str | None,
    ) -> None:
        """Answers a client's choice of mechanism, now or when its password has been checked.

        Raises:
            ProtocolError: The mechanism was not offered, or its response is malformed.
        """
        if init.mechanism not in offered:
            connection.sasl_done(SaslCode.AUTH)
        elif init.mechanism == ANONYMOUS:
            connection.sasl_done(SaslCode.OK)
        elif init.mechanism == EXTERNAL:
            known = certificate_name is not None and self._is_user(certificate_name)
            connection.sasl_done(SaslCode.OK if known else SaslCode.AUTH, certificate_name)
        elif init.mechanism == PLAIN:
            self._check_plain(connection, init.initial_response or b"")
        else:
            raise ProtocolError(Condition.NOT_IMPLEMENTED, f"SASL {init.mechanism}")

    def _is_user(self, name: str) -> bool:
        return any(user.name == name for user in self._configuration.users)

    def is_container(self, identity: str | None) -> bool:
        """Tells whether a peer may be another container."""
        if identity is None:
            told = self._configuration.anonymous.mesh
            # Who links reads and sends everywhere, whatever a client without a name may do.
            return self.permissions(None).are_all if told is None else told
        return any(user.name == identity and user.mesh for user in self._configuration.users)

    def _check_plain(self, connection: Connection, response: bytes) -> None:
        plain = parse_plain(response)
        task = asyncio.get_running_loop().create_task(
            self._check_password(connection, plain.user, plain.password)
        )
        self._logins[connection] = task
        task.add_done_callback(lambda _: self._logins.pop(connection, None))

    def forget(self, connection: Connection) -> None:
        """Gives up the login of a peer that has gone: those behind it need not wait for that."""
        login = self._logins.pop(connection, None)
        if login is not None:
            login.cancel()

    async def _check_password(self, connection: Connection, user: str, password: str) -> None:
        try:
            is_right = await self._passwords.check(user, password)
            code = SaslCode.OK if is_right else SaslCode.AUTH
            if not is_right:
                log.warning("refused a login as %.80r", user)
        except AuthenticationBusyError:
            code = SaslCode.SYS_TEMP
        self._logins.pop(connection, None)  # a refusal ends the connection, and not this
        connection.sasl_done(code, user if code is SaslCode.OK else None)
        connection.flush()

    def permissions(self, identity: str | None) -> Permissions:
        """Returns what a connection's peer may do; a user that has gone may do nothing."""
        known = self._known.get(identity)
        if known is None:
            known = permissions_of(self._configuration, identity) or Permissions(())
            self._known[identity] = known
        return known

    def close(self) -> None:
        """Stops the password threads; logins under way are given up."""
        for task in list(self._logins.values()):
            task.cancel()
        self._passwords.close()
