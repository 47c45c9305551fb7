"""Resolves the jars of a Kafka broker by Maven, once; they stay under `build`."""

from __future__ import annotations

from pathlib import Path

from maven import resolved

VERSION = "3.9.1"
CACHE = Path(__file__).parents[2] / "build" / "kafka" / VERSION

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


def jars() -> Path:
    """Return the directory of the jars."""
    return resolved(CACHE, POM, f"Kafka {VERSION}")
