"""What configuration and URL say, read once for a driver instance."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oslo_messaging._drivers.common import ConfigOptsProxy
from oslo_messaging.exceptions import ConfigurationError

from cogwork.client.connection.tokens import TokenFile
from cogwork.client.connection.url import Endpoint
from cogwork.client.interception.interceptors import Interceptors
from cogwork.client.options import Options, Retry
from cogwork.io.secret_file import SecretFileError
from cogwork.io.tls import TlsFilesError, client_context
from cogwork.oslo.addresses import AddressOptions
from cogwork.oslo.options import GROUP, OPTIONS
from cogwork.sasl.mechanisms import BY_PASSWORD

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Iterator

    from cogwork.sasl.mechanisms import MechanismName

__all__ = ("Settings", "StepRetry", "settings_of")

DEFAULT_PORT = 5672
"""As the old driver had it, with TLS too."""

PORT_MAX = 65_535

PRE_SETTLED = frozenset({"rpc-call", "rpc-cast", "rpc-reply", "notify"})

_OWN_ADDRESSES = ("vhost", "rpc_exchange", "notify_exchange")


@dataclass(frozen=True)
class StepRetry(Retry):
    """Waits that grow by so much each time; the first one is short: another host may be up."""

    step_s: float = 2.0
    interval_s: float = 1.0

    def waits_s(self, random: Callable[[], float]) -> Iterator[float]:
        """Yield the waits, without end."""
        yield self.first_s * (1 - self.jitter * random())
        wait_s = self.interval_s
        while True:
            yield wait_s * (1 - self.jitter * random())
            wait_s = min(wait_s + self.step_s, self.longest_s)


@dataclass(frozen=True)
class Settings:
    """A driver instance's.

    Attributes:
        endpoints: The hosts of the URL, beginning at a random one.
        client: How to connect.
        addresses: How addresses are made.
        has_own_name: Whether the container-id is configured; else each connection gets another.
        pre_settled: What is sent without asking for its outcome.
        reply_credit: Replies that may be on their way.
        rpc_credit: Requests that may wait, for each link.
        notify_credit: Notifications that may wait, for each link.
        link_retry_s: When a link is attached again that was refused.
        send_timeout_s: How long a cast may need.
        notify_timeout_s: How long a notification may need.
        reply_timeout_s: How long a reply may need to be sent.
        reply_retry: How often a reply is sent again; -1 without a limit.
        sender_idle_s: When a link is detached that nothing is sent on.
        notification_pools: The pools that get copies of notifications.
        interceptors: Trace what is sent and run; None where that is not wanted.
    """

    endpoints: tuple[Endpoint, ...]
    client: Options
    addresses: AddressOptions
    has_own_name: bool = False
    pre_settled: frozenset[str] = frozenset({"rpc-cast", "rpc-reply"})
    reply_credit: int = 200
    rpc_credit: int = 100
    notify_credit: int = 100
    link_retry_s: float = 10.0
    send_timeout_s: float = 30.0
    notify_timeout_s: float = 30.0
    reply_timeout_s: float = 30.0
    reply_retry: int = 0
    sender_idle_s: float = 600.0
    notification_pools: tuple[str, ...] = field(default=())
    interceptors: Interceptors | None = None


def settings_of(conf: Any, url: Any, default_exchange: str | None) -> Settings:  # noqa: ANN401  # untyped libraries' objects
    """Read the options, and what the URL's query says in their place.

    Args:
        conf: The application's `ConfigOpts`; gets the group's options where it has them not.
        url: The `TransportURL`.
        default_exchange: The application's `control_exchange`.

    Raises:
        ConfigurationError: An option cannot be used; the message says which, and why.
    """
    conf.register_opts(OPTIONS, group=GROUP)
    _check_query(url)
    group = getattr(ConfigOptsProxy(conf, url, GROUP), GROUP)
    pre_settled = _names(group.pre_settled)
    wrong = sorted(pre_settled - PRE_SETTLED)
    if wrong:
        raise ConfigurationError(
            f"[{GROUP}] pre_settled = {', '.join(wrong)}: it takes {', '.join(sorted(PRE_SETTLED))}"
        )
    return Settings(
        endpoints=_endpoints(group, url),
        client=_client_options(group, url),
        addresses=_address_options(group, url, default_exchange),
        has_own_name=bool(group.container_name),
        pre_settled=pre_settled,
        reply_credit=group.reply_link_credit,
        rpc_credit=group.rpc_server_credit,
        notify_credit=group.notify_server_credit,
        link_retry_s=group.link_retry_delay,
        send_timeout_s=group.default_send_timeout,
        notify_timeout_s=group.default_notify_timeout,
        reply_timeout_s=group.default_reply_timeout,
        reply_retry=group.default_reply_retry,
        sender_idle_s=group.default_sender_link_timeout,
        notification_pools=tuple(group.notification_pools),
        interceptors=_tracing() if group.tracing else None,
    )


def _tracing() -> Interceptors:
    """Return what traces; imported where it is wanted alone, as it needs an extra.

    Raises:
        ConfigurationError: OpenTelemetry is not installed.
    """
    try:
        from cogwork.otel.tracing import Tracing  # noqa: PLC0415  # needs OpenTelemetry
    except ImportError:
        missing = "OpenTelemetry is missing: pip install 'cogwork[otel]'"
        raise ConfigurationError(f"[{GROUP}] tracing: {missing}") from None
    return Interceptors((Tracing(),))


def _check_query(url: Any) -> None:  # noqa: ANN401  # an untyped library's object
    """Name the option of the URL's query whose value is none; oslo.config names the value only."""
    types = {option.name: option.type for option in OPTIONS}
    for name, value in url.query.items():
        try:
            types.get(name, str)(value)
        except ValueError as error:
            raise ConfigurationError(f"{name}={value} in the transport_url: {error}") from error


def _names(given: str | Iterable[str]) -> frozenset[str]:
    """Return the names in an option that may be given several times; a query has it once."""
    parts = [given] if isinstance(given, str) else given
    return frozenset(name for part in parts for name in part.replace(",", " ").split())


def _endpoints(group: Any, url: Any) -> tuple[Endpoint, ...]:  # noqa: ANN401  # untyped libraries' objects
    realm = group.sasl_default_realm
    found = []
    for host in url.hosts:
        if (host.port or DEFAULT_PORT) > PORT_MAX:
            raise ConfigurationError(
                f"the transport_url has port {host.port}: it goes up to {PORT_MAX}"
            )
        user = host.username
        if user and realm and "@" not in user:
            user = f"{user}@{realm}"
        found.append(
            Endpoint(
                scheme="amqps" if group.ssl else "amqp",
                host=host.hostname or "localhost",
                port=host.port or DEFAULT_PORT,
                user=user or None,
                password=host.password or "",
                known_as=(url.virtual_host or "") if group.ssl_verify_vhost else "",
            )
        )
    if not found:
        found.append(Endpoint("amqps" if group.ssl else "amqp", "localhost", DEFAULT_PORT))
    first = random.randrange(len(found))
    return (*found[first:], *found[:first])


def _client_options(group: Any, url: Any) -> Options:  # noqa: ANN401  # untyped libraries' objects
    has_user = any(host.username for host in url.hosts)
    given: dict[str, Any] = {"name": group.container_name} if group.container_name else {}
    if not group.pseudo_vhost and url.virtual_host:
        given["hostname"] = url.virtual_host
    return Options(
        **given,
        tls=_tls(group) if group.ssl else None,
        token=_token(group, url),
        sasl=_mechanisms(group, has_user=has_user),
        idle_timeout_s=float(group.idle_timeout),
        retry=StepRetry(
            interval_s=group.connection_retry_interval,
            step_s=group.connection_retry_backoff,
            longest_s=group.connection_retry_interval_max,
        ),
    )


def _tls(group: Any) -> ssl.SSLContext:  # noqa: ANN401  # an untyped library's object
    def path(name: str) -> Path | None:
        given = getattr(group, name)
        return Path(given) if given else None

    try:
        return client_context(
            path("ssl_ca_file"),
            path("ssl_cert_file"),
            path("ssl_key_file"),
            key_password=group.ssl_key_password,
        )
    except TlsFilesError as error:
        names = "ssl_ca_file, ssl_cert_file, ssl_key_file"
        raise ConfigurationError(f"[{GROUP}] {names}: {error}") from error


def _token(group: Any, url: Any) -> TokenFile | None:  # noqa: ANN401  # untyped libraries' objects
    """Return what reads the token for each connection; None where there is none."""
    if not group.sasl_token_file:
        return None
    option = f"[{GROUP}] sasl_token_file"
    if any(host.password for host in url.hosts):
        raise ConfigurationError(f"{option} and a password in the transport_url: use one of them")
    token = TokenFile(group.sasl_token_file)
    try:
        token()
    except SecretFileError as error:
        raise ConfigurationError(f"{option}: {error}") from error
    return token


def _mechanisms(group: Any, *, has_user: bool) -> tuple[MechanismName, ...] | None:  # noqa: ANN401  # an untyped library's object
    """List those of the allowed mechanisms that can be used; None leaves it to the client."""
    allowed = group.sasl_mechanisms.upper().split()
    if not allowed:
        return None
    wanted: tuple[MechanismName, ...] = ("EXTERNAL", "ANONYMOUS")
    if group.sasl_token_file:
        wanted = ("OAUTHBEARER",)
    elif has_user:
        wanted = BY_PASSWORD
    elif not group.ssl_cert_file and "ANONYMOUS" in allowed:
        wanted = ("ANONYMOUS",)
    usable = tuple(each for each in wanted if each in allowed)
    if usable:
        return usable if has_user else usable[:1]
    who = "with a user in the URL it needs" if has_user else "without a user in the URL it needs"
    if group.sasl_token_file:
        who = "with sasl_token_file it needs"
    raise ConfigurationError(
        f"[{GROUP}] sasl_mechanisms = {group.sasl_mechanisms}: {who} {' or '.join(wanted)}"
    )


def _address_options(group: Any, url: Any, default_exchange: str | None) -> AddressOptions:  # noqa: ANN401  # untyped libraries' objects
    names = [name for name in AddressOptions.__dataclass_fields__ if name not in _OWN_ADDRESSES]
    given = {name: getattr(group, name) for name in names}
    return AddressOptions(
        **given,
        vhost=(url.virtual_host or "") if group.pseudo_vhost else "",
        rpc_exchange=group.default_rpc_exchange or default_exchange or "rpc",
        notify_exchange=group.default_notification_exchange or default_exchange or "notify",
    )
