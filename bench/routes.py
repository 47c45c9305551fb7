"""What a measurement's bytes pass through instead of a broker: a raw relay, plain or under TLS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cogwork.cli.loadgen.url import PeerError
from cogwork.cli.loadgen.usage import ProcessUsage

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ("RawRelay", "TlsRelay")

_HERE = Path(__file__).parent


class RawRelay:
    """A relay process between senders and receivers that listen; leaving the context ends it."""

    def __init__(self, *command: str) -> None:
        """Prepares the default relay, or the one that `command` starts.

        Args:
            command: The program and its first arguments; the target's port is appended. It prints
                the port on which it listens.
        """
        self.receiver_url = ""
        self.usage: ProcessUsage | None = None
        self._command = command or (str(_HERE / "build" / "relay"),)
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def sender_url(self, port: int) -> str:
        """Starts the relay in front of `port`; returns where it listens."""
        if not Path(self._command[0]).exists():
            raise PeerError(f"{self._command[0]} is not there: `make bench` builds it")
        self._process = subprocess.Popen(
            [*self._command, str(port)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        listening = self._process.stdout.readline().strip()
        self.usage = ProcessUsage(self._process.pid)
        return self._url(listening)

    @staticmethod
    def _url(port: str) -> str:
        return f"amqp://127.0.0.1:{port}"


class TlsRelay(RawRelay):
    """A relay that ends TLS on one side and begins it on the other."""

    def __init__(self, certificate: Path, authority: Path) -> None:
        """Prepares the relay.

        Args:
            certificate: Its certificate and key, for 127.0.0.1.
            authority: The certificate that it trusts.
        """
        super().__init__(
            sys.executable, str(_HERE / "tls_relay.py"), str(certificate), str(authority)
        )

    @staticmethod
    def _url(port: str) -> str:
        return f"amqps://127.0.0.1:{port}"
