"""What the configuration says of the mesh: `[[link]]` and `[mesh]`."""

# Annotations are read at run time here, to check the configuration by them.

from typing import Annotated

from msgspec import Meta, Struct

from cogwork.config.limits import Count
from cogwork.config.link_urls import LinkUrl, link_url, without_password
from cogwork.router.mesh.admission import HELLO_INTERVAL_MS_MAX, HELLO_INTERVAL_MS_MIN
from cogwork.router.mesh.bounds import COST_MAX
from cogwork.tls.contexts import Version

__all__ = ("Cost", "Link", "MeshOptions")

HEARTBEAT_S = 1.0
"""Three that are missed are a neighbour that is gone: a stopped one is routed around in 4 s."""

SILENT_HEARTBEATS = 5
"""A data connection on which nothing has come for so long is lost, however well the other is."""

READY_TIMEOUT_S = 3.0
"""A neighbour that answers does so much sooner; one that is down must not keep clients out."""

OWNER_TIMEOUT_S = 30.0
"""A container that was killed is back by then, or will not be soon."""

Text = Annotated[str, Meta(min_length=1)]
Heartbeat = Annotated[
    float, Meta(ge=HELLO_INTERVAL_MS_MIN / 1000, le=HELLO_INTERVAL_MS_MAX // 1000)
]
"""What neighbours take; another one would refuse the link."""

Cost = Annotated[int, Meta(ge=1, le=COST_MAX)]


class Link(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[link]]`: a neighbour that this container dials.

    Attributes:
        url: `HOST:PORT`, `amqp[s]://[USER:PASSWORD@]HOST[:PORT]`, or `unix://PATH`.
        password: The user's that `url` names, where the URL does not hold it.
        password_file: The file with that password.
        token_file: The file with a token to log in by, read for each attempt.
        cost: What the way over it costs.
        certificate: For `amqps`: PEM file that this container shows.
        key: PEM file with its private key; None where the certificate's file holds it.
        key_password: What the private key is encrypted with.
        key_password_file: The file with that.
        ca: PEM file with the authorities of the other container's certificate; None takes the
            system's.
        crl_file: PEM file with the revocation lists of those; None checks none.
        minimum_version: The oldest version of TLS that is spoken.
        ciphers: For TLS 1.2, as OpenSSL names them; None leaves them to it.
    """

    url: Text
    password: Text | None = None
    password_file: Text | None = None
    token_file: Text | None = None
    cost: Cost = 1
    certificate: Text | None = None
    key: Text | None = None
    key_password: Text | None = None
    key_password_file: Text | None = None
    ca: Text | None = None
    crl_file: Text | None = None
    minimum_version: Version = "1.2"
    ciphers: Text | None = None

    @property
    def target(self) -> LinkUrl:
        """Where it leads, and how to log in there.

        Raises:
            BadLinkUrl: Nowhere.
        """
        return link_url(self)

    @property
    def is_to_worker(self) -> bool:
        """Whether it leads to another worker of this container: that one is its supervisor's."""
        return False

    def __repr__(self) -> str:
        """Show where to, never the secret: reprs end in logs."""
        return f"Link(url={without_password(self.url)!r}, cost={self.cost})"


class MeshOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[mesh]`: how this container behaves among others.

    Attributes:
        heartbeat_s: How often neighbours hear of each other; three missed are a lost neighbour.
        ready_timeout_s: How long clients are kept waiting at the start, at most, until the
            neighbours' interests are known.
        owner_timeout_s: How long the partitions of a queue on disk wait for the container that
            holds them, where that cannot be reached.
        redirect_margin: How many clients more than a neighbour this container may have before
            newcomers are sent there; None sends nobody away.
        worker_cost: What the way from one worker to another costs.
    """

    heartbeat_s: Heartbeat = HEARTBEAT_S
    ready_timeout_s: Annotated[float, Meta(ge=0)] = READY_TIMEOUT_S
    owner_timeout_s: Annotated[float, Meta(ge=0)] = OWNER_TIMEOUT_S
    redirect_margin: Count | None = None
    worker_cost: Cost = 1

    @property
    def silence_s(self) -> float:
        """For how long a data connection may be silent: longer than the one for control."""
        return SILENT_HEARTBEATS * self.heartbeat_s
