"""Good conversations, piece by piece: what the mutator starts from.

A conversation is what one client sends, cut where it would pause: a header, or a frame. They are
made by code and stored in `corpus/`, a hexadecimal line a piece, so that a change shows in review.
Run `python -m fuzz.seeds` to write the corpus anew.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt import algorithms

from cogwork.amqp import codec
from cogwork.amqp.errors import AmqpError
from cogwork.amqp.frames import AMQP_HEADER, SASL_HEADER, FrameType, encode_frame
from cogwork.amqp.outcomes import Accepted, Modified, Received, Rejected, Released
from cogwork.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    ReceiverSettleMode,
    Role,
    SenderSettleMode,
    Transfer,
    encode_performative,
)
from cogwork.amqp.sasl import SaslInit, SaslResponse, encode_sasl
from cogwork.amqp.terminus import COPY, Coordinator, Source, Target
from cogwork.amqp.types import Described, Symbol, ULong
from cogwork.container.mesh.datagrams import Datagram
from cogwork.container.mesh.names import (
    CONTROL,
    DATA,
    FRAME_BYTES,
    FROM,
    HOPS,
    INCARNATION,
    MESH,
    MISSED,
    MOVE,
    NUMBER,
    PAST,
    REMOTE_CONSUMER,
    TO,
    VHOST,
)
from cogwork.raft import wire as raft_wire
from cogwork.raft.messages import Append, Vote, VoteReply
from cogwork.replication import calls
from cogwork.router.mesh import wire as mesh_wire
from cogwork.router.mesh.bounds import PROTOCOL_VERSION
from cogwork.router.mesh.messages import (
    Acknowledgement,
    Advertisement,
    Figures,
    Hello,
    Interest,
    InterestDelta,
    InterestKind,
    InterestRequest,
    InterestSnapshot,
    RedirectHint,
    Summary,
    Version,
)
from cogwork.sasl.mechanisms import MECHANISMS
from cogwork.sasl.sides import ClientContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.performatives import Performative
    from cogwork.router.mesh.messages import Message
    from cogwork.sasl.verifier import Keys

__all__ = ("CORPUS", "conversations", "load", "write")

CORPUS = Path(__file__).parent / "corpus"

HEADER_SECTION = b"\x00\x53\x70\xc0\x04\x02\x41\x50\x04"
ANNOTATIONS = b"\x00\x53\x72\xc1\x0d\x02\xa3\x07x-opt-a\xa1\x01v"
BODY = b"\x00\x53\x75\xa0\x05hello"


def to_section(address: bytes) -> bytes:
    """Encode properties that name only `to` (AMQP 1.0 §3.2.4)."""
    fields = b"\x03\x40\x40\xa1" + bytes([len(address)]) + address
    return b"\x00\x53\x73\xc0" + bytes([len(fields)]) + fields


def frame(performative: Performative, payload: bytes = b"", channel: int = 0) -> bytes:
    return encode_frame(channel, encode_performative(performative) + payload)


def sasl(body: SaslInit | SaslResponse) -> bytes:
    return encode_frame(0, encode_sasl(body), FrameType.SASL)


def opening(**fields: Any) -> bytes:
    return frame(Open(container_id="hostile", **fields))


def begin(channel: int = 0) -> bytes:
    return frame(Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100), b"", channel)


def sender(handle: int, address: str | None, **fields: Any) -> bytes:
    return frame(
        Attach(
            name=f"s{handle}", handle=handle, role=Role.SENDER, source=Source(),
            target=Target(address=address), initial_delivery_count=0, **fields,
        )
    )  # fmt: skip  # a line for what belongs together


def receiver(
    handle: int, address: str | None, source: Source | None = None, **fields: Any
) -> bytes:
    return frame(
        Attach(
            name=f"r{handle}", handle=handle, role=Role.RECEIVER,
            source=source or Source(address=address), target=Target(), **fields,
        )
    )  # fmt: skip  # a line for what belongs together


def flow(handle: int | None = None, credit: int = 20, **fields: Any) -> bytes:
    values: dict[str, Any] = {
        "next_incoming_id": 0, "incoming_window": 100, "next_outgoing_id": 0,
        "outgoing_window": 100, "handle": handle,
    }  # fmt: skip  # a line for what belongs together
    if handle is not None:
        values |= {"delivery_count": 0, "link_credit": credit}
    return frame(Flow(**(values | fields)))


def transfer(handle: int, delivery: int | None, body: bytes = BODY, **fields: Any) -> bytes:
    tag = None if delivery is None else b"%d" % delivery
    return frame(Transfer(handle=handle, delivery_id=delivery, delivery_tag=tag, **fields), body)


def burst(handle: int, first: int, **fields: Any) -> bytes:
    """Encode eight messages that are routed as a run, where they come in one read."""
    bodies = [b"x" * (70 + 400 * (number == 5)) for number in range(8)]
    return b"".join(
        transfer(handle, first + number, body, **fields) for number, body in enumerate(bodies)
    )


def settle(first: int, last: int | None = None, **fields: Any) -> bytes:
    values: dict[str, Any] = {"role": Role.RECEIVER, "settled": True, "state": Accepted()}
    return frame(Disposition(first=first, last=last, **(values | fields)))


NONCE = "fuzzfuzzfuzzfuzz"
USER, PASSWORD, END_POINT = "fuzz", "secret", bytes(range(32))
VERIFIERS = [
    "SCRAM-SHA-256$4096:AAECAwQFBgcICQoLDA0ODw==$"
    "THoPhoTAuqyoQsK4dUHncUzgfD8fdmhsgKZhWVqNP5U=:"
    "7YiHMMi2OcXGRogub03Ek06JRZ9bkhTOdCzHa5iPLiQ=",
    "SCRAM-SHA-512$4096:AAECAwQFBgcICQoLDA0ODw==$"
    "p0NRv7AnRYEnDMi+LJb8mmadO7hlzCayf5kUIROPSkMktBhWBSZC2SSTpwiX/wTgdhXP1yVCxYG20zDPvsYR2w==:"
    "bSXNr+94D+xhqC+uXuzD1riNAGhDKr/M6m56dsacFLvOEouvG0Z24H/Oubr0fNZf9S4Z4ThZcUxXGF/QI8ek+A==",
]


ISSUER, AUDIENCE = "https://issuer.example/", "fuzz"
SIGNER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
"""Its signatures are the same each time."""

JWKS = json.dumps(
    {"keys": [algorithms.OKPAlgorithm.to_jwk(SIGNER.public_key(), as_dict=True) | {"kid": "k"}]}
).encode()


def token(**claims: object) -> str:
    """Sign a token that is good until 2100, but for what `claims` say."""
    told = {"iss": ISSUER, "aud": AUDIENCE, "sub": "bearer", "exp": 4_102_444_800} | claims
    return jwt.encode(told, SIGNER, "EdDSA", {"kid": "k"})


def bearer(text: str) -> bytes:
    """Encode a login by token."""
    response = f"n,a=bearer,\x01host=h\x01auth=Bearer {text}\x01\x01".encode()
    return sasl(SaslInit(mechanism=Symbol("OAUTHBEARER"), initial_response=response))


NEIGHBOUR, LIFE, PAIR = "neighbour", 7, 1
HOST_LIFE = 1_000_000_000
"""The incarnation of the container that is spoken to."""


def mesh_opening(kind: str) -> tuple[bytes, ...]:
    """Open one of the two connections of a link."""
    properties: dict[Symbol, object] = {MESH: kind, NUMBER: PAIR, INCARNATION: LIFE}
    opened = Open(
        container_id=NEIGHBOUR,
        max_frame_size=FRAME_BYTES,
        channel_max=100,
        properties=properties,
    )
    return AMQP_HEADER, frame(opened)


IS_CONTROL, IS_DATA = (codec.encode({MESH: kind})[3:] for kind in (CONTROL, DATA))
"""What the opens of the two have in them."""


def control(*messages: bytes) -> tuple[bytes, ...]:
    """Open a connection for control, says hello twice, and then what is given."""
    to_mesh, to_datagrams = (
        frame(
            Attach(
                name=name, handle=handle, role=Role.SENDER, source=Source(),
                target=Target(address=name), initial_delivery_count=0,
                snd_settle_mode=SenderSettleMode.SETTLED,
            )
        )
        for handle, name in enumerate(("$mesh", "$parcels"))
    )  # fmt: skip  # a line for what belongs together
    hello = protocol(Hello(heard=HOST_LIFE, **HELLO))
    said = map(_placed, (protocol(Hello(**HELLO)), hello, *messages))
    transfers = (transfer(at, number, body, settled=True) for number, (at, body) in enumerate(said))
    return (*mesh_opening(CONTROL), begin(), to_mesh, to_datagrams, *transfers)


HELLO: dict[str, Any] = {
    "id": NEIGHBOUR, "incarnation": LIFE, "version": PROTOCOL_VERSION, "virtual_hosts": ("",),
    "interval_ms": 1000, "connection": 3, "cost": 1,
    "figures": Figures(1, 2, 3, 4, 5),
}  # fmt: skip  # a line for what belongs together


def protocol(message: Message) -> bytes:
    """Encode a message of the mesh."""
    return data_section(mesh_wire.encode(message))


def data_section(data: bytes) -> bytes:
    return b"\x00\x53\x75\xb0" + len(data).to_bytes(4, "big") + data


def datagram(to: str, octets: bytes) -> bytes:
    """Encode a datagram of the mesh, as calls of replicas travel in."""
    return data_section(Datagram.label(to, NEIGHBOUR) + octets)


def _placed(body: bytes) -> tuple[int, bytes]:
    """Return the link that a message goes by."""
    return int(not body[8:].startswith(b"\x00\xa3")), body


STREAM = calls.StreamKey("$cluster", 1)


def interest(kind: int, address: str, *figures: int) -> Interest:
    return Interest(kind, "", address, *figures)


def told(kind: type[InterestDelta | InterestSnapshot], sequence: int, **fields: Any) -> bytes:
    """Encode interests with the digest that they have."""
    entries = fields.get("added") or fields.get("entries") or ()
    digest = 0
    for label, entry in entries:
        digest ^= entry.digest(label)
    head: dict[str, Any] = {"origin": NEIGHBOUR, "incarnation": LIFE, "sequence": sequence}
    return protocol(kind(**(head | {"digest": digest} | fields)))


async def _at_once(work: Callable[[], Keys]) -> Keys:
    return work()


def login(mechanism: str) -> tuple[bytes, bytes]:
    """Encode both messages of a SCRAM exchange, as both sides' nonces are known."""
    context = ClientContext(_at_once, user=USER, password=PASSWORD, end_point=END_POINT)
    client: Any = MECHANISMS[Symbol(mechanism)].client(context)
    client._nonce = NONCE
    client._bare = f"n={USER},r={NONCE}"
    asked = f"r={NONCE}{NONCE},s=AAECAwQFBgcICQoLDA0ODw==,i=4096"
    final = asyncio.run(client.respond(asked.encode())())
    init = SaslInit(mechanism=Symbol(mechanism), initial_response=client.first())
    return sasl(init), sasl(SaslResponse(response=final))


def _version(origin: str, incarnation: int, sequence: int) -> Version:
    return Version(origin, incarnation, sequence)


def filters() -> Source:
    selector = Described(Symbol("apache.org:selector-filter:string"), "a = 1 OR b LIKE 'x%'")
    no_local = Described(ULong(0x0000468C00000003), [])
    names: dict[Symbol, object] = {Symbol("selector"): selector, Symbol("no-local"): no_local}
    return Source(address="topic/a.#", filter=names)


_START = (AMQP_HEADER, opening(), begin())
_LOOP = (*_START, receiver(0, "fuzz/a"), flow(0), sender(1, "fuzz/a"))


def conversations() -> dict[str, tuple[bytes, ...]]:
    """Return the conversations by name."""
    error = AmqpError(condition=Symbol("amqp:not-allowed"), description="no")
    return {
        "sasl_anonymous": (
            SASL_HEADER,
            sasl(SaslInit(mechanism=Symbol("ANONYMOUS"), initial_response=b"me")),
            *_START,
            frame(Close()),
        ),
        "sasl_plain": (
            SASL_HEADER,
            sasl(SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0user\0secret")),
            sasl(SaslResponse(response=b"x")),
            *_START,
        ),
        "sasl_scram": (SASL_HEADER, *login("SCRAM-SHA-256"), *_START, sender(0, "fuzz/a")),
        "sasl_scram_plus": (
            SASL_HEADER,
            *login("SCRAM-SHA-512-PLUS"),
            *_START,
            receiver(0, "fuzz/a"),
            flow(0),
        ),
        "sasl_scram_asked": (
            SASL_HEADER,
            sasl(SaslInit(mechanism=Symbol("SCRAM-SHA-512"))),
            sasl(SaslResponse(response=b"n,a=fuzz,n=fuzz,r=x")),
            sasl(SaslResponse(response=b"c=biws,r=x,p=AAAA")),
        ),
        "sasl_oauth": (SASL_HEADER, bearer(token()), *_START, sender(0, "bearer/a")),
        "sasl_oauth_expired": (
            SASL_HEADER, bearer(token(exp=1)), sasl(SaslResponse(response=b"\x01")), *_START,
        ),
        "sasl_oauth_asked": (
            SASL_HEADER,
            sasl(SaslInit(mechanism=Symbol("OAUTHBEARER"))),
            sasl(SaslResponse(response=b"n,,\x01auth=Bearer a.b.c\x01\x01")),
            sasl(SaslResponse(response=b"\x01")),
        ),
        "mesh_hellos": control(protocol(Hello(heard=1, **HELLO)), protocol(RedirectHint())),
        "mesh_routes": control(
            protocol(
                Advertisement(
                    origin=NEIGHBOUR, incarnation=LIFE, sequence=1, neighbours=(("hosted", 1),)
                )
            ),
            protocol(
                Advertisement(
                    origin="further", incarnation=2, sequence=3, age_s=4, life=1,
                    neighbours=((NEIGHBOUR, 2), ("none", 5)),
                )
            ),
            protocol(
                Summary(number=9, versions=(_version(NEIGHBOUR, LIFE, 1), _version("x", 1, 2)))
            ),
            protocol(
                Acknowledgement(
                    summary=1,
                    advertisements=(_version("hosted", HOST_LIFE, 1),),
                    interests=(_version("hosted", HOST_LIFE, 1),),
                )
            ),
            protocol(RedirectHint(hosts=("amqp://127.0.0.1:5672", "wss://h:1"))),
        ),
        "mesh_interests": control(
            told(InterestDelta, 1, added=((1, interest(InterestKind.TOPIC, "topic/bystander.#")),)),
            told(
                InterestSnapshot, 2, part=0, parts=1,
                entries=(
                    (1, interest(InterestKind.ANYCAST, "bystander/a", 1, 1)),
                    (2, interest(InterestKind.QUEUE, "queue/fuzz", 1, 0, 50)),
                    (3, interest(InterestKind.PARTITIONS, "queue/parted", 16, 3)),
                    (4, interest(InterestKind.OWNER, "queue/owned", 9)),
                    (5, interest(InterestKind.DISK, "queue/disk", 1, 1)),
                    (6, interest(InterestKind.CLAIM, "claimed/a", 2, 3, 4)),
                ),
            ),
            told(InterestSnapshot, 5, part=1, parts=3, entries=()),
            told(InterestDelta, 3, digest=0, removed=(1, 2, 3, 4, 5, 6, 7)),
            protocol(InterestRequest(origin="hosted", incarnation=HOST_LIFE)),
            protocol(InterestRequest(origin="hosted", incarnation=HOST_LIFE, sequence=99)),
        ),
        "mesh_replays": control(
            *(
                told(InterestDelta, sequence, added=((1, interest(0, f"topic/{sequence}")),))
                for sequence in (1, 1, 2, 1, 4, 2)
            ),
            *(
                protocol(Advertisement(origin=NEIGHBOUR, incarnation=life, sequence=sequence))
                for life, sequence in ((LIFE, 2), (LIFE, 1), (LIFE, 2), (LIFE + 1, 1), (1, 9))
            ),
            protocol(Advertisement(origin="hosted", incarnation=HOST_LIFE, sequence=2**32 - 1)),
            protocol(Hello(**HELLO)),
        ),
        "mesh_calls": control(
            *(
                datagram("hosted", b"\x01" + calls.encode(call))
                for call in (
                    calls.GetIdentity(1, STREAM), calls.GetRoom(2, STREAM, ["a", "b"]),
                    calls.GetBounds(3, STREAM), calls.Read(4, STREAM, 0, 1000, 50),
                    calls.Proposal(5, STREAM, [b"command", b""]), calls.FindTime(6, STREAM, 9),
                    calls.GetSnapshot(7, STREAM), calls.GetMembers(8, STREAM),
                    calls.GetMove(9, STREAM), calls.GetFloor(10, STREAM),
                    calls.GetApplied(11, STREAM, 4),
                )
            ),
            *(
                datagram("hosted", b"\x01" + calls.encode(answer))
                for answer in (
                    calls.Results(1, [calls.Place(1, 2, False), calls.Failed("no", [1]), 3]),
                    calls.Records(2, [b"chunk"], 9), calls.Bounded(3, 0, 9, 100),
                )
            ),
        ),
        "mesh_raft": control(
            *(
                datagram("hosted", b"\x00\x01" + b"".join(raft_wire.encode(1, message)))
                for message in (
                    Vote(2, 3, 1, is_pre=True), VoteReply(2, True), Append(2, 3, 1, 3, []),
                )
            ),
            datagram("further", b"x" * 40), datagram(NEIGHBOUR, b"back"), datagram("hosted", b""),
            datagram("hosted", b"\x00\x02no frame"), datagram("hosted", b"\x01no call"),
        ),
        "mesh_tunnels": (
            *mesh_opening(DATA),
            *(
                frame(
                    Begin(
                        next_outgoing_id=0, incoming_window=100, outgoing_window=100,
                        properties={
                            FROM: NEIGHBOUR, TO: to, INCARNATION: LIFE, NUMBER: channel + 1,
                            HOPS: channel,
                        },
                    ),
                    b"",
                    channel,
                )
                for channel, to in enumerate(("hosted", "further", "hosted"))
            ),
            sender(0, "bystander/a", properties={VHOST: ""}), transfer(0, 0),
            receiver(1, "topic/bystander.#", properties={VHOST: ""}), flow(1),
            sender(2, "queue/fuzz", properties={VHOST: "", MOVE: LIFE, PAST: 5}),
            transfer(2, 1),
            receiver(3, "queue/fuzz", properties={VHOST: "none", REMOTE_CONSUMER: "b"}),
            sender(4, "x", properties={VHOST: "", MISSED: {"topic/a": 5}}),
        ),
        "open_full": (
            AMQP_HEADER,
            opening(
                hostname="vhost:nowhere", max_frame_size=512, channel_max=3, idle_time_out=1000,
                desired_capabilities=(Symbol("a"), Symbol("b")),
                properties={Symbol("product"): "fuzz", Symbol("n"): [1, {"k": b"v"}, None]},
            ),
            begin(),
        ),
        "loop": (
            *_LOOP,
            transfer(1, 0),
            transfer(1, 1, settled=True),
            settle(0, 1),
            transfer(1, 2),
            settle(2, state=Rejected(error=error)),
            transfer(1, 3),
            settle(3, state=Modified(delivery_failed=True, message_annotations={Symbol("x"): 1})),
            transfer(1, 4),
            settle(4, state=Received(section_number=1, section_offset=2), settled=False),
            settle(4, state=Released(), settled=False),
            flow(0, 50, drain=True, echo=True),
            frame(Detach(handle=0, closed=True)),
            transfer(1, 5),
            frame(Detach(handle=1, closed=False, error=error)),
            frame(End()),
            frame(Close(error=error)),
        ),
        "large": (
            *_LOOP,
            transfer(1, 0, b"begin" * 20, more=True),
            transfer(1, None, b"middle" * 200, more=True),
            transfer(1, None, b"end", more=False),
            transfer(1, 1, b"begin", more=True),
            transfer(1, None, b"", aborted=True),
            transfer(1, 2, b"begin", more=True),
            settle(0, 2),
            frame(Detach(handle=0, closed=True)),
            transfer(1, None, b"rest", more=True),
        ),
        "topic": (
            *_START,
            receiver(0, "topic/a.#"),
            receiver(1, "topic/*.b", snd_settle_mode=SenderSettleMode.SETTLED),
            receiver(2, None, filters()),
            flow(0), flow(1), flow(2, 1),
            sender(3, "topic/a.b"),
            transfer(3, 0), transfer(3, 1, HEADER_SECTION + ANNOTATIONS + BODY, settled=True),
            transfer(3, 2, b"large", more=True), transfer(3, None, b"end"),
            settle(0, 5),
            frame(Detach(handle=1, closed=True)),
        ),
        "relay": (
            *_START,
            receiver(0, "fuzz/a"), flow(0),
            sender(1, None),
            transfer(1, 0, to_section(b"fuzz/a") + BODY),
            transfer(1, 1, HEADER_SECTION + to_section(b"topic/a.b") + BODY),
            transfer(1, 2, to_section(b"/nobody/here") + BODY, settled=True),
            transfer(1, 3, BODY),
            transfer(1, 4, to_section(b"sink/x") + BODY, more=True), transfer(1, None, BODY),
        ),
        "reply": (
            *_START,
            receiver(0, None, Source(dynamic=True)), flow(0),
            sender(1, "$management"),
            transfer(1, 0, to_section(b"$management") + BODY),
            receiver(2, "$management"),
        ),
        "queue": (
            *_START,
            sender(0, "queue/fuzz"), transfer(0, 0), transfer(0, 1, b"big", more=True),
            transfer(0, None, b"end"),
            receiver(1, "queue/fuzz", rcv_settle_mode=ReceiverSettleMode.SECOND), flow(1),
            settle(0, 1, settled=False), settle(0, 1, settled=True),
            receiver(2, None, Source(address="work/fuzz", distribution_mode=COPY)), flow(2),
            sender(3, "work/fuzz"), transfer(3, 2), settle(2, state=Released()),
        ),
        "sessions": (
            AMQP_HEADER, opening(), begin(0), begin(1), begin(7),
            receiver(0, "fuzz/a"), frame(End()), begin(0), receiver(0, "fuzz/a"), flow(0),
            frame(End(error=error), b"", 1), begin(1),
        ),
        "resume": (
            *_START,
            sender(0, "fuzz/a", unsettled={b"0": Accepted(), b"1": None}),
            receiver(1, "fuzz/a", unsettled={b"0": None}, incomplete_unsettled=True),
            frame(
                Attach(
                    name="tx", handle=2, role=Role.SENDER, source=Source(), target=Coordinator(),
                    initial_delivery_count=0,
                )
            ),
            flow(1),
            transfer(0, 0, resume=True, state=Received(section_number=0, section_offset=3)),
        ),
        "burst": (
            *_START, receiver(0, "fuzz/a"), receiver(1, "broadcast/a"), flow(0), flow(1, 3),
            sender(2, "fuzz/a"), sender(3, "broadcast/a"),
            burst(2, 0), burst(3, 8), burst(2, 16, settled=True), burst(3, 24, settled=True),
            settle(0, 20), flow(0, 40), flow(1, 40), settle(0, 31, state=Released()),
        ),
        "settles_second": (
            *_START,
            receiver(0, "fuzz/a"), flow(0),
            sender(1, "fuzz/a", rcv_settle_mode=ReceiverSettleMode.SECOND),
            transfer(1, 0), settle(0, settled=False), settle(0, role=Role.SENDER, state=None),
        ),
        "heartbeats": (*_START, encode_frame(0, b""), encode_frame(9, b""), flow(echo=True)),
    }  # fmt: skip  # a line for what belongs together


def write() -> None:
    """Write the corpus."""
    CORPUS.mkdir(exist_ok=True)
    for name, pieces in conversations().items():
        (CORPUS / f"{name}.hex").write_text("".join(f"{piece.hex()}\n" for piece in pieces))


def load() -> dict[str, tuple[bytes, ...]]:
    """Read the corpus."""
    return {
        path.stem: tuple(bytes.fromhex(line) for line in path.read_text().split())
        for path in sorted(CORPUS.glob("*.hex"))
    }


if __name__ == "__main__":
    write()
