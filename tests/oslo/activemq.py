"""An ActiveMQ broker that speaks AMQP 1.0 and keeps nothing; its jars come by Maven, once."""

from __future__ import annotations

from pathlib import Path

from maven import resolved

from cogwork.bench.servers.process import Server, program

VERSION = "6.1.6"
"""Runs on Java 17 and newer."""

CACHE = Path(__file__).parents[2] / "build" / "activemq" / VERSION

ARTIFACTS = ("activemq-broker", "activemq-amqp", "activemq-console")

POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>cogwork</groupId><artifactId>activemq</artifactId><version>1</version>
  <dependencies>{}</dependencies>
</project>
"""

DEPENDENCY = """
    <dependency><groupId>org.apache.activemq</groupId>
    <artifactId>{}</artifactId><version>{}</version></dependency>
"""

MAIN = "org.apache.activemq.console.command.ShellCommand"

HEADER = b"AMQP\x03\x01\x00\x00"
"""Asks for SASL (AMQP 1.0 §5.3.1); the broker answers with the same."""


def jars() -> Path:
    """Return the directory of the jars."""
    pom = POM.format("".join(DEPENDENCY.format(name, VERSION) for name in ARTIFACTS))
    return resolved(CACHE, pom, f"ActiveMQ {VERSION}")


class ActiveMq(Server):
    """One broker, with its own defaults but for what it would write."""

    def command(self) -> list[str]:
        java = program("java", "default-jre-headless")
        return [
            *(java, "-Xmx192m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars()}/*"),
            f"-Djava.io.tmpdir={self.directory}",
            *(MAIN, "start"),
            f"broker:(amqp://127.0.0.1:{self.port}?transport.tcpNoDelay=true)"
            "?persistent=false&useJmx=false",
        ]

    def is_ready(self) -> bool:
        return self.answers(HEADER, HEADER, self.port)

    @property
    def options(self) -> dict[str, object]:
        return {"url": f"amqp://127.0.0.1:{self.port}"}
