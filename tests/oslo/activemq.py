"""An ActiveMQ broker that speaks AMQP 1.0 and keeps nothing; its jars come by Maven, once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from alone import alone

from cogwork.cli.servers.process import Missing, Server, program

VERSION = "6.1.6"
"""Runs on Java 17 and newer."""

CACHE = Path(__file__).parents[2] / "build" / "activemq" / VERSION
RESOLVE_TIMEOUT_S = 90
"""Less than a test has: behind a slow network the tests are skipped, until Maven has it all."""

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
    """Returns the directory of the jars."""
    with alone(CACHE):
        done = CACHE / "jars"
        if not done.is_dir():
            _resolve().rename(done)
        return done


def _resolve() -> Path:
    maven = program("mvn", "maven")
    (CACHE / "pom.xml").write_text(
        POM.format("".join(DEPENDENCY.format(name, VERSION) for name in ARTIFACTS))
    )
    partial = CACHE / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    command = [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
    try:
        subprocess.run(
            command, cwd=CACHE, check=True, capture_output=True, timeout=RESOLVE_TIMEOUT_S
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise Missing(f"Maven cannot resolve the jars of ActiveMQ {VERSION}: {error}") from error
    return partial


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
