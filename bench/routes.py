"""What a measurement's bytes pass through instead of a broker: a raw relay, plain or under TLS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cogwork.bench.url import PeerError
from cogwork.bench.usage import ProcessUsage

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ("RawRelay", "TlsRelay")

_HERE = Path(__file__).parent


class RawRelay:
    """A relay process between senders and receivers that listen; leaving the context ends it."""

    def __init__(self, *command: str, hops: int = 1) -> None:
        """Prepare the default relay, or the one that `command` starts.

        Args:
            command: The program and its first arguments; the target's port is appended. It prints
                the port on which it listens.
            hops: How many of it stand in a row.
        """
        self.receiver_url = ""
        self.usage: ProcessUsage | None = None
        self._command = command or (str(_HERE / "build" / "relay"),)
        self._hops = hops
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()

    def sender_url(self, port: int) -> str:
        """Start the relays in front of `port`; return where the first one listens."""
        if not Path(self._command[0]).exists():
            raise PeerError(f"{self._command[0]} is not there: `make bench` builds it")
        listening = str(port)
        for _ in range(self._hops):
            listening = self._start(listening)
        self.usage = ProcessUsage(*(process.pid for process in self._processes))
        return self._url(listening)

    def _start(self, target_port: str) -> str:
        """Start a relay; return the port on which it listens."""
        process = subprocess.Popen([*self._command, target_port], stdout=subprocess.PIPE, text=True)
        self._processes.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    @staticmethod
    def _url(port: str) -> str:
        return f"amqp://127.0.0.1:{port}"


class TlsRelay(RawRelay):
    """A relay that ends TLS on one side and begins it on the other."""

    def __init__(self, certificate: Path, authority: Path) -> None:
        """Prepare the relay.

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
