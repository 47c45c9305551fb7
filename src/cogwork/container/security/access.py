"""Who may connect, and do what: SASL on a container's side, and permissions by address."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition, ProtocolError
from cogwork.amqp.sasl import EXTERNAL, OAUTHBEARER, SaslCode
from cogwork.config.password_hash import is_old
from cogwork.config.settings import Permission
from cogwork.container.connections.clients import who_is
from cogwork.container.connections.shares import Holder, Rate
from cogwork.container.security.login_delays import WAITING_MAX, LoginDelays
from cogwork.container.security.password_checker import PasswordChecker
from cogwork.container.security.permissions import (
    Permissions,
    permissions_of,
    permissions_of_grant,
)
from cogwork.container.security.revocation import revoked_logins, why_expired
from cogwork.container.security.verifiers import Verifiers, kept_secret
from cogwork.container.vhost.reply_addresses import is_reply_address
from cogwork.plugin.node import Refused
from cogwork.router.exchanges.addresses import RABBITMQ_QUEUES, rabbitmq_address, without_key
from cogwork.router.mesh.bounds import ADDRESS_BYTES_MAX
from cogwork.sasl.mechanisms import MECHANISMS
from cogwork.sasl.sides import (
    Challenge,
    Failure,
    LoginBusyError,
    ServerContext,
    Success,
    TokenError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from cogwork.amqp.sasl import SaslInit
    from cogwork.amqp.types import Symbol
    from cogwork.config.settings import Configuration, User
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.connections.peer import LoginPeer
    from cogwork.container.security.log import SecurityLog
    from cogwork.container.security.oauth.checker import TokenChecker
    from cogwork.sasl.sides import Grant, Mechanism, ServerSide, Step
    from cogwork.sasl.verifier import Verifier

__all__ = ("Access", "Permits")

log = logging.getLogger("cogwork")


class Permits(dict[bytes, bool]):
    """What messages that name their address themselves may be sent to, decided once for each.

    Those of one connection: so many links as there may be of it share what is remembered.
    """

    def __init__(
        self,
        permissions: Permissions,
        vhost: str | None,
        on_refused: Callable[[str], None],
        meant: Callable[[str], str] = rabbitmq_address,
    ) -> None:
        """Decide over nothing yet.

        Args:
            permissions: The connection's.
            vhost: Its virtual host's name; None for the default one.
            on_refused: Called with the first address that is refused.
            meant: Returns the address that a message means by what it says; it may raise
                `ValueError` or `Refused`.
        """
        super().__init__()
        self._meant = meant
        self._on_refused = on_refused
        self._permissions = permissions
        self._vhost = vhost
        self._bytes_left = PERMITS_BYTES_MAX
        self._has_told = False

    def __missing__(self, address: bytes) -> bool:
        """Decide, and remember for as long as there is room."""
        if len(address) > ADDRESS_BYTES_MAX:  # it leads nowhere
            return False
        name = address.decode(errors="replace")
        allowed = is_reply_address(name) or self._allows(name)
        if not allowed and not self._has_told:
            self._has_told = True  # once: addresses are whatever a client makes up
            log.warning(
                "a client has no permission to send to %.200r: its messages there are rejected, "
                "or dropped if they are settled",
                name,
            )
            self._on_refused(name)
        size_bytes = len(address) + PERMIT_BYTES
        is_fixed = not name.startswith(RABBITMQ_QUEUES)  # that queue may become a stream
        if is_fixed and size_bytes <= self._bytes_left:
            self._bytes_left -= size_bytes
            self[address] = allowed
        return allowed

    def _allows(self, name: str) -> bool:
        try:
            address = without_key(self._meant(name))
        except (ValueError, Refused):  # it leads nowhere, too
            return False
        return self._permissions.allows("send", address, self._vhost)


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
        client: Whose connection it is.
        source: Where the peer is, as far as it counts for shares.
        user: Whom it gives itself out for, if it has said.
        who: Whose connection it is, for the security log.
        task: Waits for a step that takes long; None while the peer has to say something.
        is_counted: Whether it counts among its user's logins of this second.
    """

    mechanism: Symbol
    side: ServerSide
    client: ClientContext
    source: str
    user: str
    who: dict[str, object]
    task: asyncio.Task[None] | None = None
    is_counted: bool = False


LOGIN_WAIT_S = 4.0
"""Who logs in more often than its rate waits so long at most: less than a peer has to log in."""

NOBODY_MAY = Permission(address="#", rights=["send", "receive"])
"""In a gateway, while no user is configured."""


class Access:
    """Decides over logins and permissions.

    Attributes:
        security: Is told of logins, and of refusals.
        are_all_known: Tells whether no user may be declared that is not known here yet.
    """

    def __init__(self, configuration: Configuration, security: SecurityLog) -> None:
        """Read the users.

        Args:
            configuration: With `[[user]]` and `[anonymous]`.
            security: Is told of logins, and of refusals.

        Raises:
            PasswordHashError: A hash is malformed.
            VerifierError: A SCRAM verifier is malformed.
        """
        self.security = security
        self._configuration = configuration
        self._passwords = PasswordChecker(configuration.users)
        self._verifiers = Verifiers(configuration.users, kept_secret(None))
        self._tokens = _checker_of(configuration)
        self._logins: dict[LoginPeer, _Login] = {}
        self._delays = LoginDelays()
        self._delayed: Counter[str] = Counter()
        self._rate = Rate()
        _report_old(configuration)
        self._known: dict[str | None, Permissions] = {}
        self.are_all_known: Callable[[], bool] = lambda: True

    def replace(self, configuration: Configuration) -> dict[str, str]:
        """Take over another configuration's users, for logins and rights from now on.

        Returns:
            Why the logins of users hold no longer, by their names.
        """
        fresh = Verifiers(configuration.users, self._verifiers.secret)
        self._passwords.replace(configuration.users)
        self._verifiers = fresh
        if configuration.oauth != self._configuration.oauth:
            if self._tokens is not None:
                self._tokens.close()
            self._tokens = _checker_of(configuration)
        revoked = revoked_logins(self._configuration.users, configuration.users)
        if configuration.users != self._configuration.users:
            _report_old(configuration)
        self._configuration = configuration
        self._known.clear()
        return revoked

    def keep_secrets(self, directory: Path) -> None:
        """Keep what only the container may know on the disk, so that restarts tell nothing.

        Args:
            directory: Where.
        """
        self._verifiers = Verifiers(self._configuration.users, kept_secret(directory))

    def offered(self, mechanisms: tuple[Symbol, ...], client: ClientContext) -> tuple[Symbol, ...]:
        """List those by which a peer may log in.

        EXTERNAL is for who has shown a certificate, SCRAM where users have verifiers, OAUTHBEARER
        where tokens are taken, and what is bound to a channel where there is one that can be bound
        to.

        Args:
            mechanisms: Those of the listener.
            client: Whose connection it is.
        """
        has_shown = client.certificate_name is not None
        able = tuple(each for each in mechanisms if self._is_able(MECHANISMS[each], client))
        others = tuple(each for each in able if each != EXTERNAL)
        return able if has_shown or not others else others

    def _is_able(self, mechanism: Mechanism, client: ClientContext) -> bool:
        if mechanism.name == OAUTHBEARER:
            return self._tokens is not None
        has_verifiers = mechanism.hash_name is None or self._verifiers.has(mechanism.hash_name)
        return has_verifiers and (client.end_point is not None or not mechanism.binds)

    def authenticate(
        self,
        connection: LoginPeer,
        init: SaslInit,
        offered: tuple[Symbol, ...],
        client: ClientContext,
    ) -> None:
        """Answer a client's choice of mechanism, now or when its password has been checked.

        Raises:
            ProtocolError: Its response is malformed.
        """
        if init.mechanism not in offered:
            self._note_refusal(who_is(connection), init.mechanism, "the mechanism is not offered")
            connection.sasl_done(SaslCode.AUTH)
            return
        context = ServerContext(
            users=self,
            offered=offered,
            certificate_name=client.certificate_name,
            end_point=client.end_point,
            source=client.peer.source,
        )
        mechanism = MECHANISMS[init.mechanism]
        user = mechanism.user_of(init.initial_response or b"") or ""
        side = mechanism.server(context)
        who = who_is(connection)
        login = _Login(init.mechanism, side, client, context.source, user, who)
        self._logins[connection] = login
        self._admit(connection, login, init.initial_response)

    def respond(self, connection: LoginPeer, response: bytes) -> None:
        """Go on with a login that the client was asked more for.

        Raises:
            ProtocolError: It was not asked, or its response is malformed.
        """
        login = self._logins.get(connection)
        if login is None or login.task is not None:
            raise ProtocolError(Condition.NOT_ALLOWED, "no challenge was sent")
        self._admit(connection, login, response)

    def _admit(self, connection: LoginPeer, login: _Login, response: bytes | None) -> None:
        """Take a message now, or after the delay of who has given wrong passwords."""
        is_guessable = MECHANISMS[login.mechanism].has_password
        now_s = time.monotonic()
        wait_s = self._delays.wait_s(login.source, login.user, now_s) if is_guessable else 0.0
        if not wait_s:
            self._take(connection, login, response)
        elif self._delayed[login.source] >= WAITING_MAX:
            reason = f"{WAITING_MAX} logins from {login.source} wait already"
            self._go_on(connection, login, Failure(reason, login.user, is_temporary=True))
        else:
            self._delayed[login.source] += 1
            later = self._take_later(connection, login, response, wait_s)
            login.task = asyncio.get_running_loop().create_task(later)
            login.task.add_done_callback(lambda _: self._end_delay(login.source))

    async def _take_later(
        self, connection: LoginPeer, login: _Login, response: bytes | None, wait_s: float
    ) -> None:
        await asyncio.sleep(wait_s)
        login.task = None
        try:
            self._take(connection, login, response)
        except ProtocolError as error:
            connection.on_violation(error.condition, error.description)
        connection.flush()

    def _end_delay(self, source: str) -> None:
        self._delayed[source] -= 1
        if not self._delayed[source]:
            del self._delayed[source]

    def _take(self, connection: LoginPeer, login: _Login, response: bytes | None) -> None:
        try:
            step = login.side.respond(response)
        except ProtocolError as error:
            self._note_refusal(login.who, login.mechanism, error.description)
            raise
        if isinstance(step, (Challenge, Success, Failure)):
            self._go_on(connection, login, step)
        else:
            later = self._go_on_later(connection, login, step)
            login.task = asyncio.get_running_loop().create_task(later)

    async def _go_on_later(
        self, connection: LoginPeer, login: _Login, step: Callable[[], Awaitable[Step]]
    ) -> None:
        try:
            taken = await step()
            login.task = None
            self._go_on(connection, login, taken)
        except ProtocolError as error:
            self._note_refusal(login.who, login.mechanism, error.description)
            connection.on_violation(error.condition, error.description)
        connection.flush()

    def _go_on(self, connection: LoginPeer, login: _Login, step: Step) -> None:
        if isinstance(step, Challenge):
            connection.sasl_challenge(step.data)
            return
        if isinstance(step, Success) and not login.is_counted:
            login.is_counted = True
            wait_s = self._wait_of(step.identity)
            if wait_s is None:
                rate = self._login_rate_of(step.identity)
                reason = f"the user logs in too often (login_rate_per_user = {rate:g} a second)"
                log.info("refused a login as %.80r: %s", step.identity, reason)
                step = Failure(reason, login.user, is_temporary=True)
            elif wait_s:
                later = self._go_on_after(connection, login, step, wait_s)
                login.task = asyncio.get_running_loop().create_task(later)
                return
        self._logins.pop(connection, None)  # a refusal ends the connection, and not this
        is_guessable = MECHANISMS[login.mechanism].has_password
        if isinstance(step, Success):
            if is_guessable:
                self._delays.succeed(login.source, login.user)
            login.client.is_by_certificate = login.mechanism == EXTERNAL
            if step.grant is not None:
                login.client.grant, login.client.rules = step.grant, self._configuration.oauth
            who = {**login.who, "user": step.identity}
            self.security.event("login", **who, mechanism=login.mechanism)
            connection.sasl_done(SaslCode.OK, step.identity, step.data)
            return
        self._note_refusal({**login.who, "user": step.user}, login.mechanism, step.reason)
        # The cluster may have declared a user that is not known here yet.
        may_be_declared = not self.are_all_known() and not self.has(step.user or "")
        is_temporary = step.is_temporary or may_be_declared
        if is_guessable and not is_temporary:
            self._delays.fail(login.source, step.user, time.monotonic())
        if not is_temporary:
            log.warning(
                "refused a login as %.80r by %s: %s", step.user, login.mechanism, step.reason
            )
        connection.sasl_done(SaslCode.SYS_TEMP if is_temporary else SaslCode.AUTH)

    def _login_rate_of(self, name: str | None) -> float:
        found = (user.limits for user in self._configuration.users if user.name == name)
        own = next(found, None)
        rate = None if own is None else own.login_rate
        return self._configuration.limits.login_rate_per_user if rate is None else rate

    def _wait_of(self, user: str | None) -> float | None:
        """Return how long a user that has proved itself waits; None where it is refused.

        Other containers never wait: a mesh must come together again whatever clients do.
        """
        if user is None or self.is_container(user):
            return 0.0
        per_s = self._login_rate_of(user)
        return self._rate.wait_s(Holder("user", user), time.monotonic(), per_s, LOGIN_WAIT_S)

    async def _go_on_after(
        self, connection: LoginPeer, login: _Login, step: Step, wait_s: float
    ) -> None:
        await asyncio.sleep(wait_s)
        login.task = None
        self._go_on(connection, login, step)
        connection.flush()

    def _note_refusal(self, who: dict[str, object], mechanism: Symbol, reason: str) -> None:
        self.security.event("login_refused", **who, mechanism=mechanism, reason=reason)

    # -- what the mechanisms ask

    def has(self, name: str) -> bool:
        """Return whether there is such a user."""
        return any(user.name == name for user in self._configuration.users)

    async def check(self, name: str, password: str, source: str) -> bool:
        """Return whether the user exists and the password is theirs.

        Args:
            name: As the peer gave it.
            password: As the peer gave it.
            source: Where the peer is.

        Raises:
            LoginBusyError: Too many checks wait already.
        """
        return await self._passwords.check(name, password, source)

    async def check_token(self, token: str) -> Grant:
        """Return what a token stands for.

        Args:
            token: As the peer gave it.

        Raises:
            LoginBusyError: It cannot be checked now.
            TokenError: It is not valid, or of a user who does not log in by tokens.
        """
        tokens = self._tokens
        if tokens is None:
            raise TokenError("tokens are not taken any more")
        grant = await tokens.check(token)
        why = self._why_not_by_token(grant.user)
        if tokens is not self._tokens:
            why = "the rules for tokens have just changed"
        if why is not None:
            raise TokenError(why)
        return grant

    async def renew(
        self,
        connection: LoginPeer,
        client: ClientContext,
        token: str,
        enter: Callable[[str], None] | None = None,
    ) -> None:
        """Have a token hold in the place of the one that a connection has logged in by.

        Args:
            connection: Which one.
            client: What is kept of it.
            token: As the peer gave it.
            enter: Has the connection, if it is nobody's, be a user's; None where it never is.

        Raises:
            LoginBusyError: It cannot be checked now.
            TokenError: It is not valid, or another user's.
        """
        try:
            if client.grant is None and (connection.identity is not None or enter is None):
                raise TokenError("the connection has not logged in by one")
            grant = await self._renewed(connection, client, token, enter)
        except (LoginBusyError, TokenError) as error:
            self._note_refusal(who_is(connection), OAUTHBEARER, f"token refused: {error}")
            raise
        client.grant, client.rules = grant, self._configuration.oauth
        self.security.event("login", **who_is(connection), mechanism=OAUTHBEARER)

    async def _renewed(
        self,
        connection: LoginPeer,
        client: ClientContext,
        token: str,
        enter: Callable[[str], None] | None,
    ) -> Grant:
        grant = await self.check_token(token)
        if client.grant is None and enter is not None:
            if not (oauth := self._configuration.oauth) or not oauth.anonymous_login:
                raise TokenError("nobody may log in so (oauth.anonymous_login = false)")
            wait_s = self._wait_of(grant.user)
            if wait_s is None:
                raise LoginBusyError("the user logs in too often")
            await asyncio.sleep(wait_s)
            enter(grant.user)
        elif grant.user != connection.identity:
            raise TokenError(f"it is the token of {grant.user!r:.80}")
        return grant

    def _why_not_by_token(self, name: str) -> str | None:
        """Tell why a token may not be a user's: who issues tokens need not know of `[[user]]`s."""
        user = next((each for each in self._configuration.users if each.name == name), None)
        if user is None or user.tokens:
            return None
        return f"user {name!r:.80} is configured, without tokens = true"

    @property
    def takes_tokens(self) -> bool:
        """Whether there is an `[oauth]`."""
        return self._tokens is not None

    def why_token_ended(self, client: ClientContext) -> str | None:
        """Return why a login by token holds no longer; None where it does, or there is none."""
        if client.grant is None:
            return None
        if client.rules != self._configuration.oauth:
            return "the rules for tokens have changed: log in again"
        return self._why_not_by_token(client.grant.user) or why_expired(client.grant)

    def verifier(self, hash_name: str, name: str) -> tuple[Verifier, str | None]:
        """Return a user's verifier and configured name; a decoy and None where there is none."""
        return self._verifiers.of(hash_name, name)

    # -- what connections may do

    def is_container(self, identity: str | None) -> bool:
        """Return whether a peer may be another container."""
        if identity is None:
            told = self._configuration.anonymous.mesh
            # Who links reads and sends everywhere, whatever a client without a name may do.
            vhosts = (None, *(each.name for each in self._configuration.vhosts))
            return all(map(self.permissions(None).are_all, vhosts)) if told is None else told
        return any(user.name == identity and user.mesh for user in self._configuration.users)

    def why_not_container(self, identity: str | None, container_id: str) -> str | None:
        """Return why a peer may not be the container of an id; None where it may.

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

    def is_logging_in(self, connection: LoginPeer) -> bool:
        """Return whether a peer's password is being checked."""
        return connection in self._logins

    def forget(self, connection: LoginPeer) -> None:
        """Give up the login of a peer that has gone: those behind it need not wait for that."""
        login = self._logins.pop(connection, None)
        if login is not None and login.task is not None:
            login.task.cancel()

    def permissions(self, identity: str | None) -> Permissions:
        """Return what a connection's peer may do; a user that has gone may do nothing."""
        known = self._known.get(identity)
        if known is None:
            known = permissions_of(self._configuration, identity) or Permissions(())
            self._known[identity] = known
        return known

    def permissions_of_client(self, client: ClientContext, identity: str | None) -> Permissions:
        """Return what a connection's peer may do, by its token if it has logged in by one.

        Args:
            client: Whose connection it is.
            identity: The user that the peer proved to be; None for an anonymous one.
        """
        if client.grant is not None:
            return permissions_of_grant(self._configuration, client.grant)
        return self.permissions(identity)

    def gateway_permissions(self, user: str | None) -> Permissions:
        """Return what a gateway may do for a user, or for clients that are none.

        It never has what anonymous clients may do: its clients need not be on this machine.
        """
        if user is not None:
            return self.permissions(user)
        return Permissions(() if self._configuration.has_logins else [NOBODY_MAY])

    def is_user(self, name: str) -> bool:
        """Return whether there is a user of a name."""
        return any(user.name == name for user in self._configuration.users)

    @property
    def has_users(self) -> bool:
        """Whether there is any user."""
        return bool(self._configuration.users)

    def close(self) -> None:
        """Stop the password threads; logins under way are given up."""
        for connection in list(self._logins):
            self.forget(connection)
        self._passwords.close()
        if self._tokens is not None:
            self._tokens.close()


NAMED_MAX = 8
"""Users that one line of the log names."""


def _checker_of(configuration: Configuration) -> TokenChecker | None:
    """Make what checks tokens; the library that it needs is there only where tokens are taken."""
    if configuration.oauth is None:
        return None
    from cogwork.container.security.oauth.checker import TokenChecker  # noqa: PLC0415  # see above

    return TokenChecker(configuration.oauth)


def _report_old(configuration: Configuration) -> None:
    """Warn of hashes that are cheaper to guess against than new ones."""
    old = [user.name for user in configuration.users if _has_old_hash(user)]
    if old:
        more = f" and {len(old) - NAMED_MAX} more" if len(old) > NAMED_MAX else ""
        names = ", ".join(f"{name:.80}" for name in old[:NAMED_MAX])
        log.warning(
            "the password hashes of %s%s are old and cheap to guess against: "
            "`cogwork passwd NAME` makes new ones",
            names,
            more,
        )


def _has_old_hash(user: User) -> bool:
    return user.password_hash is not None and is_old(user.password_hash)
