"""ZeroMQ calls that nobody has room for, that are too large, or that name no method."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from .zeromq_mesh import Gateway, gateway, linked, session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BYTES_MAX = 20_000

CONFIGURATION = f"[limits]\nmax_message_size_bytes = {BYTES_MAX}\n"

LONG_S = 30.0

GatewayError = session.GatewayError


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A container that takes small messages only."""
    folder = tmp_path_factory.mktemp("zeromq-bounds") / "container"
    with gateway(folder, configuration=CONFIGURATION) as found:
        yield found


@pytest.mark.parametrize("kind", ["roundrobin", "peer2peer"])
@pytest.mark.parametrize("verb", ["CALL", "STREAM"])
def test_busy_is_told_from_unreachable(running: Gateway, kind: str, verb: str) -> None:
    caller, service = running.client(kind), running.client(kind)
    name = f"one-at-a-time-{verb}"
    service.register(name, window=1)
    caller.send(verb, {"id": 1, "to": name, "timeout_s": LONG_S}, None)
    request = service.receive()
    caller.send(verb, {"id": 2, "to": name, "timeout_s": 0.5}, None)
    caller.send(verb, {"id": 3, "to": "nobody", "timeout_s": 0.5}, None)
    told: dict[int, str] = {}
    while len(told) < 2:
        answer = caller.receive()
        if answer.verb == "ERROR":
            told[answer.header["id"]] = answer.header["code"]
    assert told == {2: "busy", 3: "unreachable"}
    service.send("REPLY", {"id": request.header["id"]}, "done")
    while (answer := caller.receive()).verb == "BEAT":
        pass
    assert (answer.verb, answer.header["id"]) == ("RESULT", 1)


def test_busy_is_told_of_services_at_another_container(tmp_path: Path) -> None:
    with linked(tmp_path) as (north, south):
        service, caller = north.client(), south.client()
        service.register("far", window=1)
        caller.send("CALL", {"id": 1, "to": "far", "timeout_s": LONG_S}, None)
        request = service.receive()
        caller.send("CALL", {"id": 2, "to": "far", "timeout_s": 0.5}, None)
        assert caller.receive().header["code"] == "busy"
        service.send("REPLY", {"id": request.header["id"]}, "done")
        assert caller.receive().verb == "RESULT"


@pytest.mark.parametrize("verb", ["CALL", "STREAM", "CAST"])
@pytest.mark.parametrize("subject", ["$cancel", "$more", "$other"])
def test_reserved_methods_are_refused_at_once(running: Gateway, verb: str, subject: str) -> None:
    caller, service = running.client(), running.client()
    name = f"methods-{verb}-{subject}"
    service.register(name)
    began_s = time.monotonic()
    sent = {"id": 1, "to": name, "subject": subject, "timeout_s": LONG_S}
    caller.send(verb, sent, None)
    answer = caller.receive()
    assert (answer.verb, answer.header["code"], answer.header["id"]) == ("ERROR", "not-allowed", 1)
    assert subject in answer.header["text"]
    assert time.monotonic() - began_s < LONG_S / 2
    assert not service.socket.poll(50)


@pytest.mark.parametrize("verb", ["CALL", "STREAM", "CAST"])
@pytest.mark.parametrize("raw", [True, False])
def test_what_is_too_large_is_refused_and_others_go_on(
    running: Gateway, verb: str, raw: bool
) -> None:
    caller, service = running.client(), running.client()
    name = f"sizes-{verb}-{raw}"
    service.register(name)
    header: dict[str, object] = {"id": 1, "to": name, "timeout_s": LONG_S}
    if raw:
        header["raw"] = "text/plain"
    body = b'"%s"' % (b"x" * (2 * BYTES_MAX))
    head = json.dumps(header).encode()
    caller.socket.send_multipart([b"COG1", verb.encode(), caller.id.encode(), head, body])
    answer = caller.receive()
    assert (answer.verb, answer.header["code"]) == ("ERROR", "bad-message")
    assert str(BYTES_MAX) in answer.header["text"]
    running.becomes(under_way=0)
    caller.send("CALL", {"id": 2, "to": name}, "small")
    service.serve_one(lambda request: request.body)
    assert caller.receive().body == "small"


def test_a_result_that_is_too_large_is_told_to_both(running: Gateway) -> None:
    caller, service = running.client(), running.client()
    service.register("results", window=1)
    for number in range(3):
        caller.send("CALL", {"id": number, "to": "results", "timeout_s": LONG_S}, None)
        request = service.receive()
        service.send("REPLY", {"id": request.header["id"]}, "x" * (2 * BYTES_MAX))
        answer = caller.receive()
        assert answer.header["condition"] == "amqp:link:message-size-exceeded"
        assert str(BYTES_MAX) in answer.header["text"]
        told = service.receive()
        assert (told.verb, told.header["code"]) == ("ERROR", "bad-message")
    caller.send("CALL", {"id": 9, "to": "results"}, None)
    service.serve_one(lambda _: "small")
    assert caller.receive().body == "small"


def test_a_part_that_is_too_large_ends_its_stream(running: Gateway) -> None:
    caller, service = running.client(), running.client()
    service.register("parts")
    caller.send("STREAM", {"id": 1, "to": "parts", "timeout_s": LONG_S}, None)
    request = service.receive()
    service.send("PART", {"id": request.header["id"]}, "small")
    service.send("PART", {"id": request.header["id"]}, "x" * (2 * BYTES_MAX))
    while (answer := caller.receive()).verb in {"BEAT", "PART"}:
        pass
    assert answer.verb == "ERROR"
    assert answer.header["condition"] == "amqp:link:message-size-exceeded"
    running.becomes(outstanding=0, streams=0)


def test_calls_go_through_the_smallest_frames(tmp_path: Path) -> None:
    """Those of the gateway's own connection are as large as ever; those to containers are not."""
    small = "[limits]\nmax_frame_size_bytes = 512\n"
    with gateway(tmp_path / "container", configuration=small) as found:
        service, caller = found.client(), found.client()
        service.register("large")
        for size in (1, 500, 512, 5_000, 300_000):
            caller.send("CALL", {"id": size, "to": "large", "timeout_s": LONG_S}, "x" * size)
            service.serve_one(lambda request: request.body * 2)
            assert len(caller.receive().body) == 2 * size
