"""The options of the gateway: `[gateway.zeromq]`."""

# Annotations are read at run time here, to check the options by them.

from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from cogwork.amqp.loopback import is_loopback
from cogwork.gateways.zeromq.errors import GatewayOptionError

__all__ = ("Options", "demand_identities", "options_of")

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Seconds = Annotated[float, Meta(gt=0)]


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be set; `docs/zeromq.md` explains each.

    Attributes:
        peer2peer: The endpoint of this kind's socket.
        roundrobin: The endpoint of this kind's socket.
        pubsub: The endpoint of this kind's socket.
        peer2peer_prefix: What its addresses start with.
        roundrobin_prefix: What its addresses start with.
        pubsub_prefix: What its addresses start with.
        user: Whose permissions hold for clients without keys of their own; None is possible while
            no user is configured.
        curve_secret_file: The gateway's key pair; needed off loopback.
        curve_clients_dir: The public keys of those who may connect, each named for its user; needed
            off loopback. None lets all in who know the gateway's.
        lease_s: How long a session is kept without a word of its client.
        sessions: How many there may be at once.
        under_way: How much one session may have under way at once.
        message_size_bytes_max: The largest frame taken.
        high_water_mark: Messages that ZeroMQ keeps for each client, in each direction.
    """

    peer2peer: Text = "tcp://127.0.0.1:5681"
    roundrobin: Text = "tcp://127.0.0.1:5682"
    pubsub: Text = "tcp://127.0.0.1:5683"
    peer2peer_prefix: Text = "exclusive"
    roundrobin_prefix: Text = "unicast"
    pubsub_prefix: Text = "topic"
    user: Text | None = None
    curve_secret_file: Text | None = None
    curve_clients_dir: Text | None = None
    lease_s: Seconds = 30.0
    sessions: Count = 100_000
    under_way: Count = 1000
    message_size_bytes_max: Count = 16 * 1024 * 1024
    high_water_mark: Count = 1000

    @property
    def endpoints(self) -> dict[str, str]:
        """The endpoint of each kind."""
        return {
            kind: _by_address(endpoint)
            for kind, endpoint in (
                ("peer2peer", self.peer2peer),
                ("roundrobin", self.roundrobin),
                ("pubsub", self.pubsub),
            )
        }


def options_of(given: Mapping[str, object]) -> Options:
    """Read the options.

    Raises:
        GatewayOptionError: One is unknown or wrong, or CURVE is missing where it is needed.
    """
    try:
        options = msgspec.convert(given, Options)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        key = place.rstrip("`")
        if "unknown field" in what:
            what = f"{what}: there are {', '.join(Options.__struct_fields__)}"
        raise GatewayOptionError(f"gateway.zeromq{'.' if key else ''}{key}: {what}") from error
    for kind, endpoint in options.endpoints.items():
        if not endpoint.startswith(("tcp://", "ipc://")):
            text = f"gateway.zeromq.{kind}: {endpoint!r}: tcp://HOST:PORT or ipc://PATH is expected"
            raise GatewayOptionError(text)
        has_keys = options.curve_secret_file is not None and options.curve_clients_dir is not None
        if not _is_loopback(endpoint) and not has_keys:
            raise GatewayOptionError(
                f"gateway.zeromq.{kind}: {endpoint} is not on loopback, where only CURVE may be "
                "spoken, and each client has a key of its own: set curve_secret_file and "
                "curve_clients_dir, or listen on tcp://127.0.0.1:PORT"
            )
    if options.curve_clients_dir is not None and options.curve_secret_file is None:
        raise GatewayOptionError("gateway.zeromq.curve_clients_dir: needs curve_secret_file, too")
    return options


def demand_identities(options: Options, is_user: Callable[[str], bool], *, has_users: bool) -> None:
    """Check that it is said who clients are: what they may do is never a default beside users.

    Args:
        options: Of the gateway.
        is_user: Tells whether there is a user of a name.
        has_users: Whether there is any.

    Raises:
        GatewayOptionError: It is not.
    """
    if options.user is not None and not is_user(options.user):
        raise GatewayOptionError(f"gateway.zeromq.user: no [[user]] is named {options.user!r}")
    if options.user is None and options.curve_clients_dir is None and has_users:
        raise GatewayOptionError(
            "gateway.zeromq.user: is missing: where there are users, it names the [[user]] whose "
            "permissions clients have (or set curve_clients_dir, with a key for each)"
        )


def _by_address(endpoint: str) -> str:
    """Return an endpoint with an address for `localhost`, which a file may say is elsewhere."""
    is_name = endpoint.startswith("tcp://localhost:")
    return endpoint.replace("localhost", "127.0.0.1", 1) if is_name else endpoint


def _is_loopback(endpoint: str) -> bool:
    """Return whether only this machine can connect to an endpoint."""
    if endpoint.startswith("ipc://"):
        return True
    host = endpoint.removeprefix("tcp://").rpartition(":")[0].strip("[]")
    return is_loopback(host)  # no name, interface or wildcard
