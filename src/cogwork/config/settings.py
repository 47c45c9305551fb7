"""What a container's configuration says, as plain data; the tables of `cogwork.toml`.

Each Struct is one table, each field one key, under the same name except where the file's singular
(`[[user]]`) is a list here (`users`). `cogwork.config.reading` reads and checks them,
`docs/configuration.md` explains every key.
"""

# Annotations are read at run time here, to check the configuration by them.

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, field, structs

from cogwork.amqp.redirect import Host
from cogwork.config.amqp091_settings import Amqp091Options
from cogwork.config.limits import Count, Limits, Positive, UserLimits
from cogwork.config.mesh_settings import Link, MeshOptions
from cogwork.config.oauth_settings import OAuth
from cogwork.config.security_log_settings import SecurityLogOptions
from cogwork.config.telemetry_settings import Audit, Telemetry
from cogwork.plugin.queue_options import QueueOptions, Size, Text
from cogwork.router.own_addresses import MANAGEMENT
from cogwork.sasl.mechanisms import MechanismName
from cogwork.tls.contexts import Version
from cogwork.tls.identity import IdentityFrom

__all__ = (
    "Address",
    "Amqp091Options",
    "Anonymous",
    "Arrow",
    "Audit",
    "Configuration",
    "Dial",
    "Engine",
    "Group",
    "Limits",
    "Link",
    "Listen",
    "MeshOptions",
    "Node",
    "OAuth",
    "Permission",
    "Policy",
    "Queue",
    "QueueOptions",
    "Right",
    "Schema",
    "SecurityLogOptions",
    "Stream",
    "StreamOptions",
    "Telemetry",
    "Tls",
    "User",
    "Vhost",
    "everything",
)

BLOCK_TIMEOUT_S = 5.0
"""A subscriber that takes nothing for so long is not slow but stuck; its publishers go on."""

BLOCK_BYTES = 16 * 1024 * 1024
"""A few seconds of a busy topic of small messages, for each slow subscriber."""

VOTERS_MAX = 5
"""More voters make a cluster slower and hardly safer."""

WORKERS_MAX = 64
"""Each is linked with each: beyond a dozen the links cost more than the cores bring."""

READERS_MAX = 64
"""As many as there may be workers: more than there are cores are of no use."""

ClusterName = Annotated[str, Meta(min_length=1, max_length=64)]
Voters = Annotated[list[Text], Meta(min_length=1, max_length=VOTERS_MAX)]
Right = Literal["send", "receive", "manage"]
RIGHTS: tuple[Right, ...] = ("send", "receive", "manage")


class Tls(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[listen.tls]`: files in PEM, named from the configuration's directory.

    Attributes:
        certificate: The certificate and its chain.
        key: The private key; None where the certificate's file holds it.
        client_ca: The authorities of client certificates; None asks for none.
        require_client_certificate: Refuse clients that show no certificate.
        key_password: What the private key is encrypted with.
        key_password_file: The file with that.
        crl_file: The revocation lists of `client_ca`; None checks none.
        minimum_version: The oldest version of TLS that is spoken.
        ciphers: For TLS 1.2, as OpenSSL names them; None leaves them to it.
        identity_from: Which name in a client's certificate is its user's.
        users: Users by patterns of such names; empty takes the name itself.
    """

    certificate: Text
    key: Text | None = None
    client_ca: Text | None = None
    require_client_certificate: bool = False
    key_password: Text | None = None
    key_password_file: Text | None = None
    crl_file: Text | None = None
    minimum_version: Version = "1.2"
    ciphers: Text | None = None
    identity_from: IdentityFrom = "cn"
    users: dict[str, str] = {}

    def __repr__(self) -> str:
        """Show the files, never the secret: reprs end in logs."""
        return f"Tls(certificate={self.certificate!r}, key={self.key!r}, ca={self.client_ca!r})"


class Listen(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[listen]]`: one socket that accepts connections, at a port or at a path.

    Attributes:
        host: The name or address to bind.
        port: 0 takes any free one; None where there is a path.
        path: Of a Unix-domain socket; None where there is a port.
        mode: The permissions of that one's file, in octal; None is the user's own alone.
        transport: What the sockets speak.
        tls: Certificates, for `amqps` and `wss`.
        sasl: Mechanisms offered; None offers what `mechanisms` says.
        origins: Web pages whose browsers may connect, for `ws` and `wss`; `*` is all.
        advertise: HOST:PORT under which clients elsewhere reach it; None is what it is bound to.
        require_tls: Whether a transport without TLS is a mistake here.
        proxy_protocol: Whether each connection begins with a header of the PROXY protocol.
        proxy_from: The networks of the load balancers that say so; others are refused.
        allow: The networks that clients may come from; empty for all.
        deny: Those that they may not come from, whatever `allow` says.
    """

    more_hosts: ClassVar[tuple[str, ...]] = ()
    """Where it listens on the same port, too, as far as this machine has these addresses."""

    host: Text = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] | None = None
    path: Text | None = None
    mode: Text | None = None
    transport: Literal["amqp", "amqps", "ws", "wss"] = "amqp"
    tls: Tls | None = None
    sasl: Annotated[list[MechanismName], Meta(min_length=1)] | None = None
    origins: list[Text] = []
    advertise: Text | None = None
    require_tls: bool = False
    proxy_protocol: bool = False
    proxy_from: list[Text] = []
    allow: list[Text] = []
    deny: list[Text] = []

    @property
    def is_plain(self) -> bool:
        """Whether sockets carry AMQP as it is."""
        return self.transport == "amqp"

    @property
    def is_for_links(self) -> bool:
        """Whether other containers connect here and nobody else."""
        return False

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect: a load balancer brings others."""
        if self.proxy_protocol:
            return False
        return self.path is not None or Host(self.host, self.port or 0).is_loopback

    @property
    def scheme(self) -> str:
        """How the URLs begin by which it is reached."""
        return self.transport if self.path is None else "unix"

    @property
    def mechanisms(self) -> tuple[MechanismName, ...]:
        """The SASL mechanisms offered: as configured, else what is safe and can work here."""
        if self.sasl is not None:
            return tuple(self.sasl)
        wanted: dict[MechanismName, bool] = {
            "OAUTHBEARER": self.tls is not None or self.is_loopback,
            "EXTERNAL": self.tls is not None and self.tls.client_ca is not None,
            "SCRAM-SHA-512-PLUS": self.tls is not None,
            "SCRAM-SHA-256-PLUS": self.tls is not None,
            "SCRAM-SHA-512": True,
            "SCRAM-SHA-256": True,
            "PLAIN": True,
            "ANONYMOUS": self.is_loopback,
        }
        return tuple(mechanism for mechanism, is_wanted in wanted.items() if is_wanted)

    @property
    def endpoint(self) -> str:
        """Host and port, as a person writes them, or the path."""
        return str(Host(self.host, self.port or 0)) if self.path is None else self.path


class Permission(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[user.permissions]]`: what may be done at which addresses.

    Attributes:
        address: A pattern: words split by `/` or `.`, `*` any one of them, `#` any number; neither
            reaches the broker's own addresses. The word `$user` is the user's name.
        rights: `manage` is what `$management` lets change about the address.
        vhost: The virtual host it holds in; None is the default one, `*` is all of them.
    """

    address: Text
    rights: Annotated[list[Right], Meta(min_length=1)]
    vhost: Text | None = None


class User(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[user]]`: who may connect.

    Attributes:
        name: As given to SASL PLAIN or SCRAM, or the common name of a client certificate.
        password_hash: As printed by `cogwork passwd`, for SASL PLAIN; None takes no password there.
        password_file: The file with the password itself; its hash is in `password_hash` then.
        scram_verifiers: As printed there, for SASL SCRAM; none takes no password there.
        tokens: Whether a token may be this user's.
        permissions: None given, nothing allowed.
        deny: What it may not do, whatever else says that it may.
        groups: The `[[group]]`s whose permissions hold for it, too.
        mesh: Whether it may be another container.
        containers: Which ones it may be, by their ids; nobody else may be those. None is any that
            is nobody else's.
        limits: What it may have, in the place of what `[limits]` says for each user.
    """

    name: Text
    password_hash: Text | None = None
    scram_verifiers: list[Text] = []
    password_file: Text | None = None
    tokens: bool = False
    permissions: list[Permission] = []
    deny: list[Permission] = []
    groups: list[Text] = []
    mesh: bool = False
    containers: Annotated[list[Text], Meta(min_length=1)] | None = None
    limits: UserLimits | None = None

    def __repr__(self) -> str:
        """Show who, never the secret: reprs end in logs."""
        secret = None if self.password_hash is None else "..."
        return (
            f"User(name={self.name!r}, password_hash={secret}, permissions={self.permissions}, "
            f"mesh={self.mesh})"
        )


class Group(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[group]]`: what several users may do alike.

    Attributes:
        name: What users name it by.
        permissions: What its members may do.
        deny: What they may not do, whatever else says that they may.
    """

    name: Text
    permissions: list[Permission] = []
    deny: list[Permission] = []


def everything() -> list[Permission]:
    """Return the permissions that forbid nothing."""
    return [Permission(address=each, rights=list(RIGHTS), vhost="*") for each in ("#", MANAGEMENT)]


class Anonymous(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[anonymous]`: who connects from this machine without a name.

    Attributes:
        permissions: None is everything while there is neither a `[[user]]` nor `[oauth]`, as
            whoever runs programs here could stop the container too; with either it is nothing.
        mesh: Whether it may be another container; None lets it where it may do everything.
    """

    permissions: list[Permission] | None = None
    mesh: bool | None = None


class Address(QueueOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[address]]`: how the addresses below a prefix, or of a pattern, behave.

    Attributes:
        prefix: The words that the addresses start with; empty for all.
        pattern: Or a pattern that they match.
        distribution: Who gets a delivery.
        fanout: The router idiom for the same, with `bias`.
        bias: Which single consumer gets it.
        kind: Who serves the addresses: a plug-in's name, or `package.module:Class`.
        slow_subscriber: What a multicast address does when a subscriber lags.
        block_timeout_s: How long `block` withholds the publishers' window.
        block_bytes: What may wait for one subscriber before the policy steps in.
        accept: When a multicast address accepts a message: once it is on its way to each
            subscriber, or once each has settled it.
        unmatched: What becomes of a multicast message that nobody wants.
    """

    prefix: str | None = None
    pattern: Text | None = None
    distribution: Literal["multicast", "closest", "balanced"] | None = None
    fanout: Literal["single", "multiple"] | None = None
    bias: Literal["closest", "spread"] | None = None
    kind: Text | None = None
    slow_subscriber: Literal["block", "drop-oldest", "detach"] = "block"
    block_timeout_s: Positive = BLOCK_TIMEOUT_S
    block_bytes: Count = BLOCK_BYTES
    accept: Literal["sent", "settled"] = "sent"
    unmatched: Literal["accept", "release"] = "accept"


class Queue(QueueOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[queue]]`: a queue that is there from the start.

    Attributes:
        address: Its address.
    """

    address: Text


class Exchange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[exchange]]`: an exchange that is there from the start.

    Attributes:
        name: Its name.
        type: `direct`, `fanout`, `topic`, `headers` or one of a plug-in.
        durable: Whether it is kept in the data directory, where there is one.
        auto_delete: Whether it goes with the last binding from it.
        internal: Whether it takes messages from other exchanges alone.
        arguments: What its type heeds, and `alternate-exchange`.
    """

    name: Text
    type: Text = "direct"
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: dict[str, Any] = {}


class Binding(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[binding]]`: a binding that is there from the start.

    Attributes:
        source: The name of the exchange that messages come from.
        destination: Where they go: `queue/NAME` or `exchange/NAME`.
        key: The binding key.
        arguments: What the exchange's type heeds.
    """

    source: Text
    destination: Text
    key: str = ""
    arguments: dict[str, Any] = {}


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[policy]]`: what queues and exchanges of some names have besides their own arguments.

    Attributes:
        name: Its name.
        pattern: A regular expression, found in the names that it holds for.
        definition: What it says, by RabbitMQ's keys.
        apply_to: What it holds for.
        priority: Of several whose patterns fit, the highest one's holds.
    """

    name: Text
    pattern: str
    definition: dict[str, Any]
    apply_to: Literal["all", "queues", "classic_queues", "quorum_queues", "exchanges"] = "all"
    priority: int = 0


class Node(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[node]]`: a node of one's own at an address.

    Attributes:
        address: Its address, or a prefix that ends in `/`.
        kind: The name of an installed plug-in, or `package.module:Class`.
        options: Handed to the node as they are.
    """

    address: Text
    kind: Text
    options: dict[str, Any] = {}


class StreamOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a stream is made with; keys of `[[stream]]`.

    Attributes:
        engine: Which engine keeps it.
        replicas: The containers that hold it, for engines that replicate; None leaves it to them.
        retention_s: The age at which records may be given up; None keeps them.
        retention_bytes: What all of them take before the oldest are given up.
        retention_records: Their number before that.
        capture: Topics whose messages it keeps too, with wildcards.
        options: Further ones, as the engine takes them.
    """

    engine: Text = "orb"
    replicas: list[Text] | None = None
    retention_s: Positive | None = None
    retention_bytes: Size | None = None
    retention_records: Size | None = None
    capture: list[Text] = []
    options: dict[str, Any] = {}


class Stream(StreamOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[stream]]`: a stream that is there from the start.

    Attributes:
        address: Its address.
    """

    address: Text


class Schema(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[schema]]`: the messages at some addresses are held to the schemas registered for them.

    Attributes:
        address: An address, or a pattern with `*` and `#`; the most specific one holds.
        policy: `enforce` rejects what does not fit, and what has no schema; `enforce-registered`
            lets the latter pass; `ignore` looks at nothing.
    """

    address: Text
    policy: Literal["enforce", "enforce-registered", "ignore"] = "enforce"


class Engine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[engine]]`: what an engine needs to know in this container.

    Attributes:
        name: The name of an installed engine, or `package.module:Class`.
        options: Handed to the engine as they are.
    """

    name: Text
    options: dict[str, Any] = {}

    def __repr__(self) -> str:
        """Show the names of the options, never their values: one may be a password."""
        return f"Engine(name={self.name!r}, options={list(self.options)})"


class Cluster(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[cluster]`: the containers that agree on what is declared for all.

    Attributes:
        name: What the cluster is called: containers of clusters with other names are not linked.
            Older versions refuse a container that has one.
        role: `primary` or `secondary`: what this container is to be at the cluster's beginning.
            It is checked against `primaries`, which decides.
        primaries: Their ids, in order of leader priority, the same in every container; at most
            five, and an odd number is wise. Each needs a `data_dir`. None is this container alone.
        voters: What `primaries` was called before.
        hold_clients: Whether clients wait while there is no root, whatever they want.
    """

    name: ClusterName | None = None
    role: Literal["primary", "secondary"] | None = None
    primaries: Voters | None = None
    voters: Voters | None = None
    hold_clients: bool = False

    def __post_init__(self) -> None:
        if self.primaries is None and self.voters is not None:
            structs.force_setattr(self, "primaries", self.voters)


class Arrow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[arrow]`: processes beside the container that serve streams as Arrow record batches.

    Attributes:
        readers: How many there are; none without.
        port: Where they listen, for the first `[[listen]]`; one more for each further one. 0 takes
            any free ones.
        nice: By how much they stand back behind others at the processor.
        idle_processors: How many they leave idle while the container has live traffic; 0 holds
            nobody back.
    """

    readers: Annotated[int, Meta(ge=0, le=READERS_MAX)] = 0
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    nice: Annotated[int, Meta(ge=0, le=19)] = 5
    idle_processors: Annotated[float, Meta(ge=0)] = 1.6


class Vhost(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[vhost]]`: a virtual host besides the default one, with addresses of its own.

    Attributes:
        name: What clients ask for: `amqp://host/name`, or the Open hostname `vhost:name`.
        addresses: `[[vhost.address]]`.
        queues: `[[vhost.queue]]`.
        streams: `[[vhost.stream]]`.
        exchanges: `[[vhost.exchange]]`.
        bindings: `[[vhost.binding]]`.
        policies: `[[vhost.policy]]`.
        schemas: `[[vhost.schema]]`.
        nodes: `[[vhost.node]]`.
    """

    name: Text
    addresses: list[Address] = field(default_factory=list, name="address")
    queues: list[Queue] = field(default_factory=list, name="queue")
    streams: list[Stream] = field(default_factory=list, name="stream")
    exchanges: list[Exchange] = field(default_factory=list, name="exchange")
    bindings: list[Binding] = field(default_factory=list, name="binding")
    policies: list[Policy] = field(default_factory=list, name="policy")
    schemas: list[Schema] = field(default_factory=list, name="schema")
    nodes: list[Node] = field(default_factory=list, name="node")


class Dial(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[dial]`: where the container may connect to.

    Attributes:
        allow: Networks, names and paths; `cogwork.io.places` says in which form.
    """

    allow: list[Text]


class Loopback(Listen, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The listener of whoever configures none: some programs take `localhost` for `::1`."""

    more_hosts: ClassVar[tuple[str, ...]] = ("::1",)


def _loopback() -> list[Listen]:
    return [Loopback(port=5672)]


class Configuration(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole `cogwork.toml`; what stands outside a `[[vhost]]` is the default virtual host's.

    Attributes:
        id: The container's id; None takes the machine's name.
        data_dir: Where the container keeps files; None keeps none.
        workers: How many processes share the work; each of them is a container.
        keep_awake: Whether processors wait awake while there is work.
        listeners: `[[listen]]`.
        links: `[[link]]`.
        dial: `[dial]`; None forbids nothing.
        mesh: `[mesh]`.
        cluster: `[cluster]`.
        users: `[[user]]`.
        groups: `[[group]]`.
        oauth: `[oauth]`; None takes no tokens.
        anonymous: `[anonymous]`.
        vhosts: `[[vhost]]`.
        addresses: `[[address]]`.
        queues: `[[queue]]`.
        streams: `[[stream]]`.
        exchanges: `[[exchange]]`.
        bindings: `[[binding]]`.
        policies: `[[policy]]`.
        schemas: `[[schema]]`.
        telemetry: `[telemetry]`; None tells nothing.
        audits: `[[audit]]`.
        security_log: `[security_log]`; None writes none.
        engines: `[[engine]]`.
        nodes: `[[node]]`.
        amqp091: `[amqp091]`.
        arrow: `[arrow]`.
        gateways: `[gateway.NAME]`: options, handed to the gateway as they are.
        limits: `[limits]`.
    """

    id: Text | None = None
    data_dir: Text | None = None
    workers: Annotated[int, Meta(ge=1, le=WORKERS_MAX)] = 1
    keep_awake: bool = False
    listeners: list[Listen] = field(default_factory=_loopback, name="listen")
    links: list[Link] = field(default_factory=list, name="link")
    dial: Dial | None = None
    mesh: MeshOptions = field(default_factory=MeshOptions)
    cluster: Cluster = field(default_factory=Cluster)
    users: list[User] = field(default_factory=list, name="user")
    groups: list[Group] = field(default_factory=list, name="group")
    oauth: OAuth | None = None
    anonymous: Anonymous = field(default_factory=Anonymous)
    vhosts: list[Vhost] = field(default_factory=list, name="vhost")
    addresses: list[Address] = field(default_factory=list, name="address")
    queues: list[Queue] = field(default_factory=list, name="queue")
    streams: list[Stream] = field(default_factory=list, name="stream")
    exchanges: list[Exchange] = field(default_factory=list, name="exchange")
    bindings: list[Binding] = field(default_factory=list, name="binding")
    policies: list[Policy] = field(default_factory=list, name="policy")
    schemas: list[Schema] = field(default_factory=list, name="schema")
    telemetry: Telemetry | None = None
    audits: list[Audit] = field(default_factory=list, name="audit")
    security_log: SecurityLogOptions | None = None
    engines: list[Engine] = field(default_factory=list, name="engine")
    nodes: list[Node] = field(default_factory=list, name="node")
    amqp091: Amqp091Options = field(default_factory=Amqp091Options)
    arrow: Arrow = field(default_factory=Arrow)
    gateways: dict[str, dict[str, Any]] = field(default_factory=dict, name="gateway")
    limits: Limits = field(default_factory=Limits)

    @property
    def has_logins(self) -> bool:
        """Whether anybody is told apart by a login."""
        return bool(self.users) or self.oauth is not None

    @property
    def at_ports(self) -> list[Listen]:
        """The listeners that are no Unix-domain sockets."""
        return [listen for listen in self.listeners if listen.path is None]
