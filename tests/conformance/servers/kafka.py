"""A Kafka broker, in KRaft mode: no ZooKeeper, one process."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from .process import Missing, Server, program

VERSION = "3.9.1"
CACHE = Path(__file__).parents[3] / "build" / "kafka" / VERSION
RESOLVE_TIMEOUT_S = 600

POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>cogwork</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
    <version>{VERSION}</version>
  </dependency></dependencies>
</project>
"""

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
"""


def jars() -> Path:
    """Resolves the broker's jars by Maven, once."""
    done = CACHE / "jars"
    if done.is_dir():
        return done
    program("java", "default-jre-headless")
    maven = program("mvn", "maven")
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "pom.xml").write_text(POM)
    partial = CACHE / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    command = [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
    try:
        subprocess.run(
            command, cwd=CACHE, check=True, capture_output=True, timeout=RESOLVE_TIMEOUT_S
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise Missing(
            f"the jars of Kafka {VERSION} cannot be resolved by Maven: {error}"
        ) from error
    partial.rename(done)
    return done


class KafkaServer(Server):
    """One broker, which is its own controller."""

    ports = 2

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._java = [
            program("java", "default-jre-headless"),
            *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-cp", f"{jars()}/*"),
        ]
        self._properties = directory / "server.properties"
        self._properties.write_text(
            PROPERTIES.format(
                port=self.port, controller_port=self.more_ports[0], directory=directory
            )
        )
        subprocess.run(
            [
                *self._java,
                "kafka.tools.StorageTool",
                *("format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(self._properties)),
            ],
            check=True,
            capture_output=True,
            cwd=directory,
        )

    def command(self) -> list[str]:
        return [*self._java, "kafka.Kafka", str(self._properties)]

    def is_ready(self) -> bool:
        client = AdminClient({"bootstrap.servers": self.bootstrap, "error_cb": lambda _: None})
        try:
            return bool(client.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"
