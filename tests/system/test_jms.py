"""Temporary destinations, and replies to them, with Apache Qpid JMS."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from maven import resolved

from cogwork.cli.servers.process import Missing

PROGRAM = Path(__file__).parent / "jms" / "Replies.java"
VERSION = "1.12.1"
CACHE = Path(__file__).parents[2] / "build" / "qpid-jms" / VERSION
TIMEOUT_S = 180.0

POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>cogwork</groupId><artifactId>qpid-jms</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.qpid</groupId><artifactId>qpid-jms-client</artifactId>
      <version>{VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""

EXPECTED = {
    "temporary": "true",
    "replies": "by the relay,by a link",
    "requestor": "answered,null",
    "first": "linked,relayed",
    "second": "linked,relayed",
    "queue": "kept",
    "topic": "told",
    "more": "false,false",
}


@pytest.fixture(scope="module")
def jars() -> Path:
    """The directory of the client's jars."""
    try:
        return resolved(CACHE, POM, f"Qpid JMS {VERSION}")
    except Missing as error:
        pytest.skip(str(error))


def test_requests_replies_and_temporary_destinations(url: str, jars: Path) -> None:
    """From its source: a Java that cannot compile it is none of this test's."""
    command = ["java", "-cp", f"{jars}/*", str(PROGRAM), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if "jdk.compiler" in done.stderr:
        pytest.skip("this Java cannot run a source file: it has no compiler")
    assert done.returncode == 0, done.stderr
    told = dict(line.split("=", 1) for line in done.stdout.splitlines())
    foreign, deleted = told.pop("foreign"), told.pop("deleted")
    assert foreign.startswith("InvalidDestinationException"), "JMS itself knows whose it is"
    assert "released" in deleted
    assert told == EXPECTED
