"""Logins that wait for their password check, and peers that do not wait for that."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from hosted import LISTEN, Hosted
from wires import Peer

from cogwork.amqp.frames import SASL_HEADER, FrameType, encode_frame
from cogwork.amqp.sasl import PLAIN, SaslInit, build_plain, encode_sasl
from cogwork.config import password_hash
from cogwork.config.settings import Configuration
from cogwork.container.security import password_checker

if TYPE_CHECKING:
    import pytest


def login(hosted: Hosted) -> Peer:
    peer = Peer(hosted)
    peer.is_deaf = True
    peer.feed(SASL_HEADER)
    init = SaslInit(mechanism=PLAIN, initial_response=build_plain("ann", "x"))
    peer.feed(encode_frame(0, encode_sasl(init), FrameType.SASL))
    return peer


def test_who_has_gone_is_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_checker, "PENDING_MAX", password_checker.THREADS + 1)
    gate = threading.Event()
    monkeypatch.setattr(password_hash, "derive", lambda *_: gate.wait(10) and b"")

    async def story() -> list[bool]:
        hosted = Hosted(Configuration(id="hosted", listeners=[LISTEN]))
        first = [login(hosted) for _ in range(password_checker.THREADS + 1)]
        await asyncio.sleep(0.01)
        first[-1].vanish()
        await asyncio.sleep(0.01)
        late = [login(hosted), login(hosted)]
        await asyncio.sleep(0.01)
        gate.set()
        return [peer.connection.is_over for peer in late]

    assert asyncio.run(story()) == [False, True], "there is room for one"
