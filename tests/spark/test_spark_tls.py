"""`amqps` with an authority of one's own, all the way: and no secret where one could read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

import trustme
from archives import digest

import cogwork.sync
import cogwork.testing
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.main import run
from cogwork.client.connection.certificates import Certificates
from cogwork.config.password_hash import hash_password
from cogwork.pipeline.archive import Archive
from cogwork.pipeline.arrow import ArrowClient
from cogwork.pipeline.spark.errors import JobFailed, OptionError
from cogwork.pipeline.spark.job import explaining, run_job
from cogwork.pipeline.spark.lines import line_of_spark
from cogwork.pipeline.spark.source import CogworkSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

NAMES = ("in", "out", "again", "rehearsal")

SECRET = "correct-horse-battery"

CONFIGURATION = """
[[listen]]
port = 0
transport = "amqps"
tls = {{ certificate = "{folder}/server.pem", client_ca = "{folder}/ca.pem" }}

[[user]]
name = "jo"
password_hash = "{password_hash}"
permissions = [
  {{ address = "#", rights = ["send", "receive", "manage"] }},
  {{ address = "$management", rights = ["send", "manage"] }},
]

[[user]]
name = "archivist"
permissions = [
  {{ address = "#", rights = ["send", "receive", "manage"] }},
  {{ address = "$management", rights = ["send", "manage"] }},
]
"""

ROWS = 500


class Stage(NamedTuple):
    """A container that speaks TLS only.

    Attributes:
        url: With no user in it.
        folder: Has `ca.pem`, `client.pem` and `other.pem`, an authority that nobody trusts.
    """

    url: str
    folder: Path

    @property
    def user_url(self) -> str:
        return self.url.replace("amqps://", f"amqps://jo:{SECRET}@")

    def options(self) -> dict[str, str]:
        """Of the source and the sink, with a certificate in the place of a password."""
        return {
            "url": self.url,
            "tlsCaFile": str(self.folder / "ca.pem"),
            "tlsCertFile": str(self.folder / "client.pem"),
        }


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("tls")
    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    other.cert_pem.write_to_path(folder / "other.pem")
    server = authority.issue_cert("127.0.0.1")
    server.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    client = authority.issue_cert("archivist@example.com", common_name="archivist")
    client.private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    password_hash = hash_password(SECRET)
    text = CONFIGURATION.format(folder=folder, password_hash=password_hash)
    text += "".join(f'[[stream]]\naddress = "stream/{name}"\n' for name in NAMES)
    with cogwork.testing.container(text) as url:
        stage = Stage(url, folder)
        tls = Certificates(str(folder / "ca.pem")).context()
        with cogwork.sync.connect(stage.user_url, tls=tls) as mesh:
            mesh.stream("in").append([b"%d" % number for number in range(ROWS)])
        yield stage


def bodies(stage: Stage, stream: str) -> list[int]:
    tls = Certificates(str(stage.folder / "ca.pem")).context()
    with ArrowClient(stage.user_url, tls=tls) as client:
        batches = client.read(stream, *client.bounds(stream), ["body"])
        return [int(body) for batch in batches for body in batch.column("body").to_pylist()]


def test_rows_come_and_go_by_a_certificate(
    spark: SparkSession, stage: Stage, tmp_path: Path
) -> None:
    rows = spark.read.format("cogwork").options(**stage.options()).load("in")
    writer = rows.select("body").write.format("cogwork").mode("append")
    writer.options(**stage.options(), transactionId="t").save("stream/out")
    assert sorted(bodies(stage, "out")) == list(range(ROWS))
    growing = spark.readStream.format("cogwork").options(**stage.options())
    query = (
        growing.option("startingOffsets", "earliest")
        .schema("body binary")
        .load("in")
        .writeStream.format("cogwork")
        .options(**stage.options(), path="stream/again", checkpointLocation=str(tmp_path / "c"))
        .option("idempotencyColumns", "body")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert sorted(bodies(stage, "again")) == list(range(ROWS))


def test_a_job_of_ones_own_finds_the_certificates(
    spark: SparkSession, stage: Stage, tmp_path: Path
) -> None:
    job = tmp_path / "job.py"
    job.write_text("assert source('in', 'offset bigint').count() == 500\n")
    files = Certificates(str(stage.folder / "ca.pem"), str(stage.folder / "client.pem"))
    run_job(spark, str(job), [], stage.url, files)
    with pytest.raises(JobFailed, match="certificate"):
        run_job(spark, str(job), [], stage.url, Certificates(str(stage.folder / "other.pem")))


def test_an_archive_and_back(stage: Stage, tmp_path: Path) -> None:
    files = ["--ca-file", str(stage.folder / "ca.pem")]
    files += ["--cert-file", str(stage.folder / "client.pem")]
    to = str(tmp_path / "archive")
    words = ["pipeline", "archive", stage.url, "in", "--to", to, "--once", "--master", "none"]
    assert run([*words, *files]) == ExitCode.OK
    with Archive.open(to) as archive:
        archived = archive.table("in").table.scan().to_arrow()
    tls = Certificates(str(stage.folder / "ca.pem")).context()
    with ArrowClient(stage.user_url, tls=tls) as client:
        import pyarrow as pa  # noqa: PLC0415 # with Spark

        assert digest(archived) == digest(pa.Table.from_batches(list(client.read("in", 0, ROWS))))
    words = ["pipeline", "replay", stage.url, "--archive", to, "--stream", "in"]
    assert run([*words, "--into", "stream/rehearsal", "--speed", "max", *files]) == ExitCode.OK
    assert bodies(stage, "rehearsal") == list(range(ROWS))


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        ([], ExitCode.CONNECTION, "certificate"),
        (["--ca-file", "{}/other.pem"], ExitCode.CONNECTION, "certificate"),
        (["--ca-file", "{}/nothing.pem"], ExitCode.USAGE, "nothing.pem"),
        (["--key-file", "{}/ca.pem"], ExitCode.USAGE, "--key-file needs --cert-file"),
        (["--cert-file", "{}/ca.pem"], ExitCode.CONFIGURATION, "certificate and its private key"),
    ],
)
def test_what_is_wrong_is_one_line(
    stage: Stage,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: ExitCode,
    line: str,
) -> None:
    command = [
        "pipeline",
        "archive",
        stage.user_url,
        "in",
        "--to",
        str(stage.folder / "a"),
        "--once",
    ]
    found = run([*command, "--master", "none", *(each.format(stage.folder) for each in words)])
    errors = capsys.readouterr().err
    assert (found, errors.count("\n")) == (code, 1), errors
    assert line in errors
    assert SECRET not in errors


def test_a_key_without_a_certificate_is_refused(stage: Stage) -> None:
    with pytest.raises(OptionError, match="tlsKeyFile needs tlsCertFile"):
        CogworkSource({"url": stage.url, "stream": "in", "tlsKeyFile": "x"}).reader(
            CogworkSource({}).schema()
        )


def test_no_secret_is_in_plans_progress_and_errors(
    spark: SparkSession, stage: Stage, tmp_path: Path
) -> None:
    told: list[str] = []
    options = {"url": stage.user_url, "tlsCaFile": str(stage.folder / "ca.pem")}
    with explaining(spark, told.append):
        rows = spark.read.format("cogwork").options(**options).load("in")
        assert rows.count() == ROWS
        rows.select("body").write.format("cogwork").mode("append").options(
            **options, transactionId="secret"
        ).save("stream/out")
        growing = spark.readStream.format("cogwork").options(**options).load("in")
        query = (
            growing.select("body")
            .writeStream.format("cogwork")
            .options(**options, path="stream/again", checkpointLocation=str(tmp_path / "c"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
    told += [each.json for each in query.recentProgress]
    told += [
        file.read_text()
        for file in (tmp_path / "c").rglob("*")
        if file.suffix != ".crc" and file.is_file()
    ]
    query.explain(extended=True)
    told.append(rows._jdf.queryExecution().toString())
    for wrong in (SECRET[::-1], SECRET):
        url = stage.url.replace("amqps://", f"amqps://nobody:{wrong}@")
        with pytest.raises(Exception, match="cogwork") as caught:
            spark.read.format("cogwork").options(**{**options, "url": url}).load("in").count()
        told += [str(caught.value), line_of_spark(caught.value) or ""]
        assert wrong not in "".join(told)
    assert SECRET not in "".join(told)
