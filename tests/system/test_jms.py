"""Logins, temporary destinations, and replies to them, with Apache Qpid JMS."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from maven import resolved

from cogwork.bench.servers.process import Missing
from cogwork.config.password_hash import hash_password
from cogwork.sasl.verifier import HASHES, make_verifier

PROGRAM = Path(__file__).parent / "jms" / "Replies.java"
LOGIN = Path(__file__).parent / "jms" / "Login.java"
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

CONFIGURATION = f"""
[[user]]
name = "ann"
password_hash = "{hash_password("pen,cil=")}"
scram_verifiers = {[str(make_verifier(each, "pen,cil=")) for each in HASHES]}
permissions = [{{ address = "#", rights = ["send", "receive"] }}]

[limits]
authentication_timeout_s = 60.0  # a cold Java takes seconds for the iterations on a busy machine

[anonymous]
permissions = [{{ address = "#", rights = ["send", "receive", "manage"] }}]
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


def java(jars: Path, program: Path, *arguments: str) -> str:
    """From its source: a Java that cannot compile it is none of these tests'."""
    command = ["java", "-cp", f"{jars}/*", str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if "jdk.compiler" in done.stderr:
        pytest.skip("this Java cannot run a source file: it has no compiler")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("mechanism", "password", "told"),
    [
        ("SCRAM-SHA-256", "pen,cil=", "let in"),
        ("SCRAM-SHA-512", "pen,cil=", "let in"),
        ("PLAIN", "pen,cil=", "let in"),
        ("SCRAM-SHA-256", "pencil", "refused"),
    ],
)
def test_logins(url: str, jars: Path, mechanism: str, password: str, told: str) -> None:
    options = f"jms.populateJMSXUserID=false&amqp.saslMechanisms={mechanism}"
    assert java(jars, LOGIN, f"{url}?{options}", "ann", password) == f"{told}\n"


def test_requests_replies_and_temporary_destinations(url: str, jars: Path) -> None:
    told = dict(line.split("=", 1) for line in java(jars, PROGRAM, url).splitlines())
    foreign, deleted = told.pop("foreign"), told.pop("deleted")
    assert foreign.startswith("InvalidDestinationException"), "JMS itself knows whose it is"
    assert "released" in deleted
    assert told == EXPECTED
