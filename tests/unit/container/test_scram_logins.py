"""SCRAM at the wire of a container: who is let in, what is refused, and that others go on."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest
from hosted import LISTEN, Hosted
from wires import Peer

from cogwork.amqp.frames import SASL_HEADER, FrameReader, FrameType, encode_frame
from cogwork.amqp.sasl import (
    SaslChallenge,
    SaslCode,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    decode_sasl,
    encode_sasl,
)
from cogwork.amqp.types import Symbol
from cogwork.config.password_hash import hash_password
from cogwork.config.settings import Anonymous, Configuration, Permission, User
from cogwork.sasl.mechanisms import MECHANISMS, SCRAM
from cogwork.sasl.sides import ClientContext
from cogwork.sasl.verifier import HASHES, make_verifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.sasl import SaslFrame
    from cogwork.sasl.verifier import Keys

EVERYTHING = [Permission(address="#", rights=["send", "receive"])]
ANN = User(
    name="ann",
    scram_verifiers=[str(make_verifier(each, "secret", 4096)) for each in HASHES],
    permissions=EVERYTHING,
)
OLD = User(name="old", password_hash=hash_password("secret"))
END_POINT = bytes(32)


async def at_once(work: Callable[[], Keys]) -> Keys:
    return work()


def client_of(mechanism: str, user: str = "ann", password: str = "secret", **fields: Any) -> Any:
    fields.setdefault("end_point", END_POINT)
    context = ClientContext(at_once, user=user, password=password, **fields)
    return MECHANISMS[Symbol(mechanism)].client(context)


class Stage(Hosted):
    """A container whose connections may be of TLS, with a bystander."""

    def __init__(self, *users: User, with_tls: bool = False) -> None:
        configuration = Configuration(
            id="hosted",
            listeners=[LISTEN],
            users=list(users or (ANN, OLD)),
            anonymous=Anonymous(permissions=EVERYTHING),
        )
        super().__init__(configuration)
        self._with_tls = with_tls
        self._publisher = Peer(self).greet().publisher("all/a")
        self._consumer = Peer(self).greet().consumer("all/a", credit=10)

    def connect(self, **settings: Any) -> Any:
        connection = super().connect(**settings)
        client = self.container.peers.client_of(connection)
        client.mechanisms = (*SCRAM, *client.mechanisms)
        client.end_point = END_POINT if self._with_tls else None
        return connection

    def check_bystanders(self) -> None:
        before = len(self._consumer.arrivals)
        self._publisher.send(b"still here")
        self.settle_down()
        assert [each.body for each in self._consumer.arrivals[before:]] == [b"still here"]


class Stranger:
    """Speaks SASL frame by frame."""

    def __init__(self, stage: Stage) -> None:
        self._peer = Peer(stage)
        self._peer.is_deaf = True
        self._reader = FrameReader(65536)
        self._peer.feed(SASL_HEADER)
        self.header = self._peer.take()
        (offer,) = self._read(self.header[8:])
        assert isinstance(offer, SaslMechanisms)
        self.offered = offer.sasl_server_mechanisms

    @property
    def is_refused(self) -> bool:
        return self._peer.finished

    @property
    def identity(self) -> str | None:
        return self._peer.connection.identity

    def _read(self, data: bytes) -> list[SaslFrame]:
        return [decode_sasl(frame.body) for frame in self._reader.feed(data)]

    def say(self, body: SaslInit | SaslResponse) -> list[SaslFrame]:
        self._peer.feed(encode_frame(0, encode_sasl(body), FrameType.SASL))
        return self._read(self._peer.take())

    def begin(self, mechanism: str, response: bytes | None) -> list[SaslFrame]:
        return self.say(SaslInit(mechanism=Symbol(mechanism), initial_response=response))

    def log_in(self, mechanism: str, client: Any) -> SaslOutcome:
        (asked,) = self.begin(mechanism, client.first())
        assert isinstance(asked, SaslChallenge)
        answer = asyncio.run(client.respond(asked.challenge)())
        (ended,) = self.say(SaslResponse(response=answer))
        assert isinstance(ended, SaslOutcome)
        return ended


@pytest.mark.parametrize("mechanism", SCRAM)
def test_both_sides_prove_themselves(mechanism: str) -> None:
    stage = Stage(with_tls=True)
    stranger = Stranger(stage)
    client = client_of(mechanism, chosen=(Symbol(mechanism),))
    ended = stranger.log_in(mechanism, client)
    assert ended.code is SaslCode.OK
    client.finish(ended.additional_data)
    assert stranger.identity == "ann"


def test_scram_comes_before_plain_and_plus_with_tls_alone() -> None:
    with_tls = ["SCRAM-SHA-512-PLUS", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-512", "SCRAM-SHA-256"]
    rest = ["ANONYMOUS", "PLAIN"]
    assert Stranger(Stage(with_tls=True)).offered == (*with_tls, *rest)
    assert Stranger(Stage()).offered == (*with_tls[2:], *rest)
    assert Stranger(Stage(OLD)).offered == ("ANONYMOUS", "PLAIN"), "nobody has a verifier"


def test_users_old_and_unknown_cannot_be_told_from_others() -> None:
    stage = Stage()
    asked = {}
    for name in ("ann", "old", "eve"):
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            first = f"n,,n={name},r=abc".encode()
            (challenge,) = Stranger(stage).begin(mechanism, first)
            assert isinstance(challenge, SaslChallenge)
            _, salt, count = challenge.challenge.decode().split(",")
            (again,) = Stranger(stage).begin(mechanism, first)
            assert isinstance(again, SaslChallenge)
            assert again.challenge.decode().split(",")[1:] == [salt, count]
            asked[name, mechanism] = (len(salt), count)
    assert len(set(asked.values())) == 1
    for name in ("ann", "old", "eve"):
        stranger = Stranger(stage)
        client = client_of("SCRAM-SHA-256", name, "wrong", end_point=None)
        assert stranger.log_in("SCRAM-SHA-256", client) == SaslOutcome(code=SaslCode.AUTH)
        assert stranger.is_refused


def test_verifiers_of_a_new_configuration_hold_at_once() -> None:
    stage = Stage(OLD)
    access = stage.container._access
    lines = [str(make_verifier("sha256", "secret", 4096))]
    user = User(name="old", scram_verifiers=lines, permissions=EVERYTHING)
    access.replace(Configuration(id="hosted", listeners=[LISTEN], users=[user]))
    ended = Stranger(stage).log_in(
        "SCRAM-SHA-256", client_of("SCRAM-SHA-256", "old", end_point=None)
    )
    assert ended.code is SaslCode.OK


BAD = [
    b"",
    b"n,,n=ann",
    b"n,,n=,r=abc",
    b"n,,r=abc,n=ann",
    b"x,,n=ann,r=abc",
    b"n,a=bob,n=ann,r=abc",
    b"y,,n=ann,r=abc",
    b"p=tls-unique,,n=ann,r=abc",
    b"\xff\xff",
    b"n,,n=ann,r=" + b"a" * 5_000,
]


@pytest.mark.parametrize("first", BAD)
def test_a_malformed_beginning_is_refused_and_logged(
    first: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(with_tls=True)
    stranger = Stranger(stage)
    with caplog.at_level(logging.WARNING, "cogwork"):
        assert stranger.begin("SCRAM-SHA-256", first) == [SaslOutcome(code=SaslCode.AUTH)]
    assert stranger.is_refused
    (line,) = caplog.messages
    assert "SCRAM-SHA-256" in line
    stage.check_bystanders()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512-PLUS"])
@pytest.mark.parametrize(
    "change",
    [
        lambda _: b"",
        lambda final: final[:-1],
        lambda final: final[: len(final) // 2],
        lambda final: b"c=!!" + final[4:],
        lambda final: final.replace(b",r=", b",r=x"),
        lambda final: final.rpartition(b",")[0],
        lambda final: final.partition(b"p=")[0] + b"p=AAAA",
        lambda final: final + b"\0",
    ],
)
def test_a_malformed_proof_is_refused(mechanism: str, change: Callable[[bytes], bytes]) -> None:
    stage = Stage(with_tls=True)
    stranger = Stranger(stage)
    client = client_of(mechanism, chosen=(Symbol(mechanism),))
    (asked,) = stranger.begin(mechanism, client.first())
    assert isinstance(asked, SaslChallenge)
    final = asyncio.run(client.respond(asked.challenge)())
    answer = SaslResponse(response=change(final))
    assert stranger.say(answer) == [SaslOutcome(code=SaslCode.AUTH)]
    assert stranger.is_refused
    stage.check_bystanders()


def test_a_login_over_another_channel_is_refused() -> None:
    stage = Stage(with_tls=True)
    client = client_of("SCRAM-SHA-512-PLUS", end_point=b"x" * 32)
    ended = Stranger(stage).log_in("SCRAM-SHA-512-PLUS", client)
    assert ended.code is SaslCode.AUTH


def test_a_megabyte_ends_the_connection_alone() -> None:
    stage = Stage()
    stranger = Stranger(stage)
    stranger.begin("SCRAM-SHA-256", b"n,,n=ann,r=" + b"a" * (1 << 20))
    assert stranger.is_refused
    stage.check_bystanders()


def test_who_was_not_asked_may_not_answer() -> None:
    stage = Stage()
    stranger = Stranger(stage)
    stranger.say(SaslResponse(response=b"x"))
    assert stranger.is_refused
    stage.check_bystanders()


def test_plain_as_somebody_else_is_refused() -> None:
    stage = Stage()
    stranger = Stranger(stage)
    response = b"bob\0old\0secret"
    assert stranger.begin("PLAIN", response) == [SaslOutcome(code=SaslCode.AUTH)]
    assert stranger.is_refused
