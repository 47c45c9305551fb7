"""Source and sink log in by a token that a file holds, which nobody reads in a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from issuers import AUDIENCE, ISSUER, Issuer

import cogwork.sync
import cogwork.testing
from cogwork.pipeline.spark.errors import OptionError
from cogwork.pipeline.spark.read_options import read_options

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

CONFIGURATION = """
[oauth]
issuer = "{issuer}"
audience = ["{audience}"]
jwks = "{jwks}"

[[user]]
name = "jo"
tokens = true
permissions = [
  {{ address = "#", rights = ["send", "receive", "manage"] }},
  {{ address = "$management", rights = ["send", "manage"] }},
]

[[stream]]
address = "stream/in"

[[stream]]
address = "stream/out"

[[stream]]
address = "stream/again"
"""

ROWS = 200


class Stage(NamedTuple):
    """A container that takes tokens, and a file that holds one."""

    url: str
    file: Path
    token: str

    def options(self) -> dict[str, str]:
        return {"url": self.url, "tokenFile": str(self.file)}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder, issuer = tmp_path_factory.mktemp("tokens"), Issuer()
    (folder / "jwks.json").write_bytes(issuer.jwks())
    token = issuer.token("jo")
    (folder / "token").write_text(token)
    text = CONFIGURATION.format(issuer=ISSUER, audience=AUDIENCE, jwks=folder / "jwks.json")
    with cogwork.testing.container(text) as url:
        with cogwork.sync.connect(url, token=token) as client:
            client.stream("in").append([b"%d" % number for number in range(ROWS)])
        yield Stage(url, folder / "token", token)


def test_rows_come_and_go_and_no_plan_has_the_token(
    spark: SparkSession, stage: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = spark.read.format("cogwork").options(**stage.options()).load("in").select("body")
    rows.explain(extended=True)
    assert stage.token not in capsys.readouterr().out
    writer = rows.write.format("cogwork").mode("append")
    writer.options(**stage.options(), transactionId="t").save("stream/out")
    written = spark.read.format("cogwork").options(**stage.options()).load("out")
    assert written.count() == ROWS
    query = (
        spark.readStream.format("cogwork")
        .options(**stage.options(), startingOffsets="earliest")
        .schema("body binary")
        .load("in")
        .writeStream.format("cogwork")
        .options(**stage.options(), path="stream/again", checkpointLocation=str(tmp_path / "c"))
        .option("idempotencyColumns", "body")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert spark.read.format("cogwork").options(**stage.options()).load("again").count() == ROWS
    assert stage.token not in str(query.lastProgress)


def test_without_the_token_nothing_is_read(spark: SparkSession, stage: Stage) -> None:
    rows = spark.read.format("cogwork").option("url", stage.url).load("in")
    with pytest.raises(Exception, match="no permission to receive"):
        rows.count()


def test_what_cannot_be_is_refused() -> None:
    beside = {"url": "amqp://jo:pass@host", "stream": "in", "tokenFile": "t"}
    with pytest.raises(OptionError, match="tokenFile and a password in the url"):
        read_options(beside, is_streaming=False)
    with pytest.raises(OptionError, match="tokenFile names no file"):
        read_options({"url": "amqp://host", "stream": "in", "tokenFile": ""}, is_streaming=False)
