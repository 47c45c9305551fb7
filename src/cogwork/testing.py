"""A container for tests: in this process, on a free port of the loopback, in a moment.

    with cogwork.testing.container() as url:
        ...

    async with cogwork.testing.container() as url:
        ...

Theory of operation. The container runs on an event loop of its own, in a thread, so that tests may
block, and may be synchronous or not.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Self

from cogwork.config.reading import defaults, parse, with_options
from cogwork.container.container import Container
from cogwork.io.loop import EventLoop

if TYPE_CHECKING:
    from cogwork.config.settings import Configuration

__all__ = ("TestContainer", "container")

START_TIMEOUT_S = 10.0


def container(configuration: str = "", *, port: int = 0, id: str = "test") -> TestContainer:  # noqa: A002  # as in the configuration
    """Run a container for the length of a `with` or an `async with`, which give its URL.

    Args:
        configuration: What a `cogwork.toml` would say. Where it has no `[[listen]]`, the
            container listens on a free port of 127.0.0.1.
        port: The port to listen on instead of a free one.
        id: The container's id.

    Raises:
        ConfigurationError: The text is wrong.
    """
    return TestContainer(configuration, port, id)


class TestContainer:
    """One container and its thread.

    Attributes:
        url: Where it listens first; set while it runs.
        urls: Where it listens.
    """

    __test__ = False
    """Not a test, whatever a test runner makes of the name."""

    def __init__(self, configuration: str, port: int, container_id: str) -> None:
        self.urls: list[str] = []
        self._configuration = _configured(configuration, port, container_id)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.urls[0]

    def start(self) -> Self:
        """Start the thread, and returns once the container listens.

        Raises:
            ListenError: The port is taken.
            TimeoutError: It does not listen in time.
        """
        self._started.clear()
        self._failure = None
        self._thread = threading.Thread(target=self._run, name="cogwork-container", daemon=True)
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S):
            raise TimeoutError(f"the container does not listen after {START_TIMEOUT_S:g} s")
        if self._failure is not None:
            self._thread.join()
            failure, self._failure = self._failure, None
            raise failure
        return self

    def stop(self) -> None:
        """Close every connection and end the thread."""
        if self._thread is None or self._loop is None:
            return
        assert self._stopping is not None
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = self._loop = None

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=EventLoop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # raised again by `start`
            self._failure = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        running = Container(self._configuration)
        await running.start()
        self.urls = running.endpoints
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._started.set()
        await self._stopping.wait()
        await running.stop(drain_timeout_s=0)

    def __enter__(self) -> str:
        return self.start().url

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> str:
        await asyncio.to_thread(self.start)
        return self.url

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)


def _configured(text: str, port: int, container_id: str) -> Configuration:
    configuration = parse(text, "configuration of the test") if text else defaults()
    listens = () if text and "[[listen]]" in text else (f"127.0.0.1:{port}",)
    return with_options(configuration, configuration.id or container_id, listens)
