"""What is still to be sent when the driver has been cleaned up."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import oslo_messaging
import pytest
from helpers import client, rpc
from system.served import within

from cogwork.oslo.sending import Sending
from cogwork.testing import container

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its executors


class Endpoint:
    """Replies when it is told to."""

    def __init__(self) -> None:
        self.is_called = threading.Event()
        self.go_on = threading.Event()

    def work(self, ctxt: dict[str, Any]) -> str:
        self.is_called.set()
        self.go_on.wait(30)
        return "done"


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Keep the reasons why messages were to be sent again."""
    reasons: list[Exception] = []
    retry: Callable[[Sending, Exception], None] = Sending._retry

    def note(sending: Sending, error: Exception) -> None:
        reasons.append(error)
        retry(sending, error)

    monkeypatch.setattr(Sending, "_retry", note)
    return reasons


def test_a_reply_after_the_clean_up_is_given_up_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint, reasons = Endpoint(), counted(monkeypatch)
    target = oslo_messaging.Target(topic="late", server="one")
    with (
        container() as url,
        rpc(url, default_reply_retry=-1, default_reply_timeout=5) as there,
        rpc(url) as here,
    ):
        server = oslo_messaging.get_rpc_server(there, target, [endpoint], executor="threading")
        server.start()
        calling = threading.Thread(target=call, args=(client(here, "late", timeout=3),))
        calling.start()
        assert endpoint.is_called.wait(10)
        there.cleanup()
        endpoint.go_on.set()
        within(3, lambda: "cannot send a reply" in caplog.text, "a word about the reply")
        calling.join(10)
        server.stop()
        server.wait()
    assert "the driver was cleaned up" in caplog.text
    assert len(reasons) == 1


def call(calls: oslo_messaging.RPCClient) -> None:
    """Wait in vain."""
    with pytest.raises(oslo_messaging.MessagingTimeout):
        calls.call({}, "work")
