"""A session of Spark for the length of a command: Ctrl-C and SIGTERM end it, and what it does.

Theory of operation. Here, Spark's processes end with this one. A server goes on with what it was
asked for until it is told otherwise, so it is told. One that does not answer is no reason to stay:
PySpark's client repeats what failed for ten minutes, and waits for some answers without end; from
the first signal on it asks once, and after a while its connection is closed, with which everything
fails that waits for an answer.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
import warnings
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ("leave", "spark_session")

LEAVE_S = 10.0
"""For each step of leaving a server; after so long its connection is closed."""


OF_CLIENT = r"pyspark\.sql\.connect\."


@contextmanager
def spark_session(
    name: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> Iterator[SparkSession]:
    """Open a session for the length of a `with`.

    Args:
        name: The application's name.
        master: Spark's master; None is all cores of this machine.
        remote: A Spark Connect server instead.
        settings: Spark's settings.
        log: The file for what Spark's JVM logs.

    Yields:
        The session.

    Raises:
        OptionError: Nothing is a master by that name.
        SessionError: None can be made.
        KeyboardInterrupt: SIGTERM came.
    """
    from cogwork.pipeline.spark.session import is_remote, open_session

    server = _Server()
    with ExitStack() as stack:
        stack.callback(logging.disable, logging.root.manager.disable)
        stack.enter_context(_interrupted_by_signals(server))
        spark = open_session(name, master=master, remote=remote, settings=settings, log=log)
        # PySpark has put its own handler there: it asks a JVM that may be answering just now.
        stack.enter_context(_interrupted_by_signals(server))
        if is_remote(spark):
            server.session = spark
        stack.callback(leave, spark, spark.stop)
        try:
            yield spark
        except BaseException as error:
            server.begin_to_leave()
            leave(spark, server.interrupt)
            if _is_of_interrupt(error):
                raise KeyboardInterrupt from error
            raise


def leave(spark: SparkSession, step: Callable[[], object]) -> None:
    """Take a step of leaving, and go on where it fails, or take a server too long.

    Args:
        spark: The session; its JVM, or its server, may have gone before.
        step: What to do.
    """
    from cogwork.pipeline.spark.session import is_remote

    def take() -> None:
        with suppress(Exception):
            step()

    if not is_remote(spark):
        take()
        return
    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    thread.join(LEAVE_S)


def _is_of_interrupt(error: BaseException) -> bool:
    """Return whether it failed while it was being interrupted: PySpark tells its server first."""
    each: BaseException | None = error
    while each is not None and not isinstance(each, KeyboardInterrupt):
        each = each.__cause__ or each.__context__
    return each is not None


class _Server:
    """What a session of Spark Connect leads to.

    Attributes:
        session: The session; None before there is one, and where Spark is here.
    """

    def __init__(self) -> None:
        self.session: Any = None
        self._is_leaving = False

    def begin_to_leave(self) -> None:
        """Have the client ask once, and for so long."""
        if self.session is None:
            return
        self.session.client.set_retry_policies([])
        if not self._is_leaving:
            self._is_leaving = True
            warnings.filterwarnings("ignore", module=OF_CLIENT)  # what fails now, fails by intent
            threading.Thread(target=self._cut_off, daemon=True).start()

    def interrupt(self) -> None:
        """End what is under way; here it ends with Spark."""
        if self.session is not None:
            self.session.interruptAll()

    def _cut_off(self) -> None:
        time.sleep(LEAVE_S)
        if not self.session.client.is_closed:
            self.session.client.close()


@contextmanager
def _interrupted_by_signals(server: _Server) -> Iterator[None]:
    """Have SIGTERM do what Ctrl-C does, and both begin to leave the server."""

    def interrupt(number: int, frame: object) -> None:
        del number, frame
        logging.disable()  # Py4J logs what it was doing
        server.begin_to_leave()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # as of SIGINT in a shell's background
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
