"""What is too large to be sent is refused at once, and unwritten; nobody waits for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import oslo_messaging
import pytest
from helpers import client, rpc
from system.meshes import Member

from cogwork.bench.servers.process import free_ports

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its executors

CHUNKS = 20_000
"""Of a megabyte each: written whole they would take 20 GB."""


class Repeating:
    """What the server does."""

    def repeat(self, ctxt: dict[str, Any], what: str, times: int) -> str:
        return what * times

    def list(self, ctxt: dict[str, Any], times: int) -> list[str]:
        return ["x" * 1_000_000] * times


def test_a_reply_that_is_too_large_ends_its_call_at_once(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    member = Member("small", port, [], tmp_path, "[limits]\nmax_message_size_bytes = 100_000\n")
    member.start()
    try:
        with rpc(f"{member.url}/") as here:
            target = oslo_messaging.Target(topic="large", server="one")
            server = oslo_messaging.get_rpc_server(
                here, target, [Repeating()], executor="threading"
            )
            server.start()
            try:
                calls = client(here, "large", timeout=60)
                began_s = time.monotonic()
                with pytest.raises(oslo_messaging.RemoteError, match=r"cannot be sent: .* bytes"):
                    calls.call({}, "repeat", what="x" * 1000, times=200)
                with pytest.raises(oslo_messaging.RemoteError, match=r"cannot be sent: more than"):
                    calls.call({}, "list", times=CHUNKS)
                large = ["x" * 1_000_000] * CHUNKS
                for send in (calls.call, calls.cast):
                    with pytest.raises(oslo_messaging.MessageDeliveryFailure, match="more than"):
                        send({}, "repeat", what=large, times=1)
                loop: list[object] = []
                loop.append(loop)
                with pytest.raises(ValueError, match="Circular"):
                    calls.call({}, "repeat", what=["x" * 70_000, loop], times=1)
                assert time.monotonic() - began_s < 20
                assert calls.call({}, "repeat", what="x", times=2) == "xx"
            finally:
                server.stop()
                server.wait()
    finally:
        member.kill()
