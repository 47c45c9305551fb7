"""A Kafka broker, in KRaft mode: no ZooKeeper, one process."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from cogwork.bench.servers.process import Missing, Server, program

if TYPE_CHECKING:
    from pathlib import Path

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={directory}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
num.io.threads=2
num.network.threads=1
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
"""
"""A broker that was killed is let in again when its session is over, after nine seconds if nothing
else is said."""


__all__ = ("KafkaServer",)


class KafkaServer(Server):
    """One broker, which is its own controller.

    Args:
        directory: Where it keeps what it keeps.
        jars: A directory with `kafka_2.13` and all that it needs, as Maven resolves them.
    """

    port_count = 2

    def __init__(self, directory: Path, jars: Path) -> None:
        super().__init__(directory)
        self._java = [
            program("java", "default-jre-headless"),
            *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-cp", f"{jars}/*"),
        ]
        self._properties = directory / "server.properties"
        self._properties.write_text(
            PROPERTIES.format(
                port=self.port, controller_port=self.more_ports[0], directory=directory
            )
        )
        formatting = ("format", "-t", CLUSTER_ID, "-c", str(self._properties))
        try:
            subprocess.run(
                [*self._java, "kafka.tools.StorageTool", *formatting],
                check=True,
                capture_output=True,
                cwd=directory,
            )
        except subprocess.CalledProcessError as error:
            reason = error.stderr[-500:].decode(errors="replace")
            raise Missing(f"Kafka cannot make its directory: {reason}") from error

    def command(self) -> list[str]:
        """Return what starts it."""
        return [*self._java, "kafka.Kafka", str(self._properties)]

    def is_ready(self) -> bool:
        """Return whether it answers."""
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "error_cb": lambda _: None,
            "log_level": 0,
        }
        client = AdminClient(settings)
        try:
            return bool(client.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    @property
    def options(self) -> dict[str, object]:
        """The engine's options that lead to it."""
        return {"bootstrap": self.bootstrap}

    @property
    def bootstrap(self) -> str:
        """Where it is."""
        return f"127.0.0.1:{self.port}"
