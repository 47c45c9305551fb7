"""Leaving a session of Spark: by signals, and from a server that does not answer."""

from __future__ import annotations

import signal
import threading
import warnings
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from cogwork.cli.commands.pipelines import session as module
from cogwork.cli.commands.pipelines.session import leave, spark_session
from cogwork.pipeline.spark import session as sessions

if TYPE_CHECKING:
    from collections.abc import Iterator


class Client:
    """PySpark's, as far as leaving needs it."""

    def __init__(self) -> None:
        self.is_closed = False
        self.policies: list[object] = ["ten minutes"]
        self.closed = threading.Event()

    def set_retry_policies(self, policies: list[object]) -> None:
        self.policies = policies

    def close(self) -> None:
        self.is_closed = True
        self.closed.set()


class Session:
    """A session of Spark Connect; its server may be silent."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self) -> None:
        self.client = Client()
        self.is_silent = False
        self.heard: list[str] = []

    def interruptAll(self) -> None:  # noqa: N802  # Spark's name
        self._ask("interrupt")

    def stop(self) -> None:
        self._ask("stop")
        self.client.close()

    def _ask(self, what: str) -> None:
        if self.is_silent:
            self.client.closed.wait()
            raise ConnectionError("the channel is closed")
        self.heard.append(what)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Session:
    made = Session()
    monkeypatch.setattr(sessions, "open_session", lambda *_, **__: made)
    return made


@pytest.fixture(autouse=True)
def warnings_as_before() -> Iterator[None]:
    with warnings.catch_warnings():
        yield


def test_a_session_is_stopped(opened: Session) -> None:
    with spark_session("x") as spark:
        assert spark is opened
    assert opened.heard == ["stop"]
    assert opened.client.policies == ["ten minutes"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_has_the_server_end_what_it_does(opened: Session, number: int) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), spark_session("x"):
        signal.raise_signal(number)
    assert opened.heard == ["interrupt", "stop"]
    assert opened.client.policies == []
    assert signal.getsignal(number) is before


def test_what_fails_while_it_is_interrupted_is_no_error(opened: Session) -> None:
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:  # PySpark tells the server, which has gone
            raise ConnectionError("nobody answers") from None

    with pytest.raises(KeyboardInterrupt), spark_session("x"):
        work()
    with pytest.raises(ConnectionError), spark_session("x"):
        raise ConnectionError("nobody answers")


def test_a_server_that_is_silent_is_left_all_the_same(
    opened: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEAVE_S", 0.05)
    opened.is_silent = True
    with pytest.raises(KeyboardInterrupt), spark_session("x"):
        signal.raise_signal(signal.SIGINT)
    assert opened.client.closed.wait(60)
    assert opened.heard == []


def test_a_step_that_fails_is_the_last_of_it(opened: Session) -> None:
    spark: Any = opened
    leave(spark, lambda: 1 // 0)
    assert opened.heard == []
