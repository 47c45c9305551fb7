"""A RabbitMQ with its AMQP 1.0 plug-in, with ports, a directory and a name server of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import ClassVar

from cogwork.bench.servers.process import Missing, Server

SCRIPT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Debian's own wrapper would change the user, and take none of the variables."""

HEADER = b"AMQP\x00\x00\x09\x01"


class RabbitMq(Server):
    """One node, without any plug-in besides that for AMQP 1.0."""

    port_count: ClassVar[int] = 3

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._dist_port, self._epmd_port = self.more_ports
        self._epmd: subprocess.Popen[bytes] | None = None

    @property
    def hosts(self) -> str:
        """User, password, host and port, as a transport URL has them."""
        return f"guest:guest@127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        if not SCRIPT.exists():
            raise Missing("RabbitMQ is not installed (Debian package rabbitmq-server)")
        return [str(SCRIPT)]

    @property
    def environment(self) -> dict[str, str]:
        """What keeps this node apart from any other."""
        return {
            **os.environ,
            "HOME": str(self.directory),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"cogwork{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "RABBITMQ_CONFIG_FILE": str(self.directory / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.directory / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.directory / "logs"),
            "RABBITMQ_PID_FILE": str(self.directory / "pid"),
            # It has two cores at most here, and no need for busy schedulers.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none",
            "RABBITMQ_CTL_ERL_ARGS": "+S 1:1 +sbwt none",
        }

    def run(self, *arguments: str) -> list[str]:
        """Run a command of `rabbitmqctl`; return its lines."""
        done = subprocess.run(
            [str(SCRIPT.with_name("rabbitmqctl")), "-q", *arguments],
            env=self.environment,
            capture_output=True,
            check=True,
            timeout=120,
        )
        return done.stdout.decode().splitlines()

    def launch(self) -> None:
        command = self.command()
        (self.directory / "rabbitmq.conf").write_text(
            f"listeners.tcp.local = 127.0.0.1:{self.port}\nlog.console = true\n"
        )
        (self.directory / "enabled_plugins").write_text("[rabbitmq_amqp1_0].\n")
        with (self.directory / "log").open("ab") as log:
            self._epmd = subprocess.Popen(
                ["epmd"], env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            self._process = subprocess.Popen(
                command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                start_new_session=True,
            )

    def is_ready(self) -> bool:
        return self.answers(HEADER, b"\x01\x00\x00", self.port)  # its connection.start

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        super().kill()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait()
            self._epmd = None

    @property
    def options(self) -> dict[str, object]:
        return {"url": f"amqp://{self.hosts}"}
