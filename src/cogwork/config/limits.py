"""How much one container takes on: every bound with its default and the reason for it."""

# Annotations are read at run time here, to check the configuration by them.

from typing import Annotated

from msgspec import Meta, Struct

from cogwork.dataplane.connection_settings import IDLE_TIMEOUT_S_MAX

__all__ = ("Limits", "UserLimits")

CONNECTIONS = 10_000
"""At 16 KiB for an idle connection, 160 MiB; more need the system's limit of open files raised."""

CONNECTIONS_PER_HOLDER = 5_000
"""Of a user, and of a source address: one of them never takes what all have together."""

UNAUTHENTICATED = 2_048
"""Some thousand clients that come back at once take turns; each is 16 KiB, and a frame at most."""

UNAUTHENTICATED_PER_SOURCE = 512
"""Four addresses fill the pool; the one that has most makes room then."""

CONNECTION_RATE = 500.0
"""About what a core can accept of clients that log in by TLS and SCRAM, and do nothing else."""

SESSIONS_PER_CONNECTION = 16_384
"""Client libraries use one or a few, but the last AMQP driver of oslo.messaging one for each link:
a service that calls thousands of others has thousands for ten minutes."""

SESSIONS = 50_000
SESSIONS_PER_HOLDER = 25_000
"""Of a user, and of a source address. A session takes some kilobytes."""

LINKS = 200_000
LINKS_PER_HOLDER = 100_000
LINKS_PER_CONNECTION = 65_536
"""A link takes some kilobytes, too; a service of OpenStack that calls thousands has thousands."""

ATTACH_RATE = 2_000.0
"""About what a core can decide over, and do nothing else."""

DYNAMIC = 50_000
DYNAMIC_PER_HOLDER = 25_000
DYNAMIC_PER_CONNECTION = 4_096
"""A client has one for its replies, or one for each request under way."""

QUEUES = 100_000
QUEUES_PER_HOLDER = 50_000
"""Of a user, and of a source address. An empty queue takes 6 KiB, and no file of its own."""

STREAMS = 10_000
STREAMS_PER_HOLDER = 5_000
"""A stream has its own files, once there is more in it than in the write-ahead log."""

EXCHANGES = 100_000
EXCHANGES_PER_HOLDER = 50_000
"""Of a user, and of a source address. An exchange without bindings takes 2 KiB."""

BINDINGS = 1_000_000
BINDINGS_PER_HOLDER = 500_000
"""A binding takes 1 KiB."""

DECLARATION_RATE = 2_000.0
"""As links are attached: a service that comes back attaches to its queues, which makes them."""

LINKS_PER_SESSION = 4096
"""A service that subscribes to some thousands of topics on one session still fits."""

MAX_FRAME_SIZE_BYTES = 32 * 1024
"""Big enough that headers cost nothing, small enough that one frame never holds up the others."""

MAX_MESSAGE_SIZE_BYTES = 128 * 1024 * 1024
"""Only storing nodes assemble a message, and then it is this much memory for each one."""

SESSION_WINDOW_FRAMES = 4096
"""Times the frame size it bounds the bytes on their way in a session: 128 MiB at the default."""

LINK_CREDIT = 5000
"""Measured: fewer cost more flow frames, many more leave the processor's cache."""

UNSENT_BYTES = 1024 * 1024
"""Beyond it a connection counts as congested and is given nothing more; see `unsent_bytes`."""

HELD_BYTES = 256 * 1024 * 1024
"""Beyond it no sender's window is widened, whoever it is: the process must stay alive."""

MEMORY_WATERMARK = 0.8
"""Of what there is: the rest is for what consumers need, and for the system."""

QUEUE_MEMORY = 0.6
QUEUE_MEMORY_PER_USER = 0.4
"""Of what there is: what queues hold of messages takes a little more than their bytes."""

QUEUE_MEMORY_BYTES = 512 * 1024 * 1024
"""What most queues never reach; beyond it each message is written once more, and read."""

DELIVERY_TIMEOUT_S = 300.0
"""The biggest message that is allowed by default, over 4 MBit/s."""

AUTHENTICATION_TIMEOUT_S = 10.0
"""From accept to open; a password check takes a tenth of a second, a slow network a few."""

IDLE_TIMEOUT_S = 60.0
"""A peer that is gone is noticed within a minute; an empty frame each half minute costs nothing."""

DRAIN_TIMEOUT_S = 10.0
"""Process managers kill after 30 s or so: settle within a third of that, or close."""

FRAME_SIZE_BYTES_LEAST = 512
"""MIN-MAX-FRAME-SIZE: the smallest limit that a peer may announce (AMQP 1.0 §2.8.19)."""

FRAME_SIZE_BYTES_MOST = 1024 * 1024
"""What the data plane's read buffer has room for."""

Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Positive = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(gt=0, lt=1)]


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bounds of one container; `docs/configuration.md` explains each.

    Attributes:
        connections: At once, over all listeners.
        connections_per_source: At once, of one source address.
        connections_per_user: At once, of one user.
        unauthenticated: At once, connections that have not opened.
        unauthenticated_per_source: At once, of those, of one source address.
        connection_rate_per_source: New connections each second, of one source address.
        login_rate_per_user: Logins each second, of one user.
        sessions_per_connection: At once; announced as channel-max.
        sessions: At once, over all connections.
        sessions_per_source: At once, of one source address.
        sessions_per_user: At once, of one user.
        links: At once, over all connections.
        links_per_source: At once, of one source address.
        links_per_user: At once, of one user.
        links_per_connection: At once.
        attach_rate_per_source: Links attached each second, of one source address.
        dynamic_addresses: At once, over all connections, temporary queues and topics among them.
        dynamic_addresses_per_source: At once, of one source address.
        dynamic_addresses_per_user: At once, of one user.
        dynamic_addresses_per_connection: At once.
        queues: At once, over all virtual hosts, but for temporary ones.
        queues_per_source: At once, made by clients of one source address.
        queues_per_user: At once, made by one user.
        streams: At once, over all virtual hosts.
        streams_per_source: At once, made by clients of one source address.
        streams_per_user: At once, made by one user.
        exchanges: At once, over all virtual hosts.
        exchanges_per_source: At once, made by clients of one source address.
        exchanges_per_user: At once, made by one user.
        bindings: At once, from exchanges, over all virtual hosts.
        bindings_per_source: At once, made by clients of one source address.
        bindings_per_user: At once, made by one user.
        declaration_rate_per_source: Queues and streams made each second, by clients of one source
            address.
        links_per_session: At once; announced as handle-max.
        max_frame_size_bytes: The biggest frame a peer may send.
        max_message_size_bytes: The biggest message a peer may send; announced on each link.
        session_window_frames: Frames a peer may send before we widen its window.
        link_credit: Messages a peer may send on a link before we grant more.
        unsent_bytes: For each connection, bytes that its peer has not yet taken.
        held_bytes: For all connections together, messages that wait for receivers outside queues,
            those that have come in part, and what peers have not taken.
        memory_watermark: Share of the memory there is, above which publishers wait.
        queue_memory: Share of the memory there is that all queues together may hold.
        queue_memory_per_user: Share that the queues may hold which one user has made.
        queue_memory_bytes: What all queues on disk together keep in memory of their messages.
        delivery_timeout_s: From a delivery's first frame to its last.
        authentication_timeout_s: From accept to open.
        idle_timeout_s: Silence after which a peer is gone; announced to it.
        drain_timeout_s: For unsettled deliveries when the container stops.
    """

    connections: Count = CONNECTIONS
    connections_per_source: Count = CONNECTIONS_PER_HOLDER
    connections_per_user: Count = CONNECTIONS_PER_HOLDER
    unauthenticated: Count = UNAUTHENTICATED
    unauthenticated_per_source: Count = UNAUTHENTICATED_PER_SOURCE
    connection_rate_per_source: Positive = CONNECTION_RATE
    login_rate_per_user: Positive = CONNECTION_RATE
    sessions_per_connection: Annotated[int, Meta(ge=1, le=65_536)] = SESSIONS_PER_CONNECTION
    sessions: Count = SESSIONS
    sessions_per_source: Count = SESSIONS_PER_HOLDER
    sessions_per_user: Count = SESSIONS_PER_HOLDER
    links: Count = LINKS
    links_per_source: Count = LINKS_PER_HOLDER
    links_per_user: Count = LINKS_PER_HOLDER
    links_per_connection: Count = LINKS_PER_CONNECTION
    attach_rate_per_source: Positive = ATTACH_RATE
    dynamic_addresses: Count = DYNAMIC
    dynamic_addresses_per_source: Count = DYNAMIC_PER_HOLDER
    dynamic_addresses_per_user: Count = DYNAMIC_PER_HOLDER
    dynamic_addresses_per_connection: Count = DYNAMIC_PER_CONNECTION
    queues: Count = QUEUES
    queues_per_source: Count = QUEUES_PER_HOLDER
    queues_per_user: Count = QUEUES_PER_HOLDER
    streams: Count = STREAMS
    streams_per_source: Count = STREAMS_PER_HOLDER
    streams_per_user: Count = STREAMS_PER_HOLDER
    exchanges: Count = EXCHANGES
    exchanges_per_source: Count = EXCHANGES_PER_HOLDER
    exchanges_per_user: Count = EXCHANGES_PER_HOLDER
    bindings: Count = BINDINGS
    bindings_per_source: Count = BINDINGS_PER_HOLDER
    bindings_per_user: Count = BINDINGS_PER_HOLDER
    declaration_rate_per_source: Positive = DECLARATION_RATE
    links_per_session: Count = LINKS_PER_SESSION
    max_frame_size_bytes: Annotated[
        int, Meta(ge=FRAME_SIZE_BYTES_LEAST, le=FRAME_SIZE_BYTES_MOST)
    ] = MAX_FRAME_SIZE_BYTES
    max_message_size_bytes: Annotated[int, Meta(ge=1, le=2**63 - 1)] = MAX_MESSAGE_SIZE_BYTES
    session_window_frames: Count = SESSION_WINDOW_FRAMES
    link_credit: Count = LINK_CREDIT
    unsent_bytes: Count = UNSENT_BYTES
    held_bytes: Annotated[int, Meta(ge=1, le=2**63 - 1)] = HELD_BYTES
    memory_watermark: Share = MEMORY_WATERMARK
    queue_memory: Share = QUEUE_MEMORY
    queue_memory_per_user: Share = QUEUE_MEMORY_PER_USER
    queue_memory_bytes: Annotated[int, Meta(ge=1_048_576, le=2**63 - 1)] = QUEUE_MEMORY_BYTES
    delivery_timeout_s: Positive = DELIVERY_TIMEOUT_S
    authentication_timeout_s: Positive = AUTHENTICATION_TIMEOUT_S
    idle_timeout_s: Annotated[float, Meta(gt=0, lt=IDLE_TIMEOUT_S_MAX)] = IDLE_TIMEOUT_S
    drain_timeout_s: Annotated[float, Meta(ge=0)] = DRAIN_TIMEOUT_S


class UserLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[user.limits]`: what one user may have, in the place of what `[limits]` says for each.

    Attributes:
        connections: In the place of `connections_per_user`.
        sessions: In the place of `sessions_per_user`.
        links: In the place of `links_per_user`.
        dynamic_addresses: In the place of `dynamic_addresses_per_user`.
        queues: In the place of `queues_per_user`.
        streams: In the place of `streams_per_user`.
        exchanges: In the place of `exchanges_per_user`.
        bindings: In the place of `bindings_per_user`.
        login_rate: In the place of `login_rate_per_user`.
        queue_memory: In the place of `queue_memory_per_user`.
    """

    connections: Count | None = None
    sessions: Count | None = None
    links: Count | None = None
    dynamic_addresses: Count | None = None
    queues: Count | None = None
    streams: Count | None = None
    exchanges: Count | None = None
    bindings: Count | None = None
    login_rate: Positive | None = None
    queue_memory: Share | None = None
