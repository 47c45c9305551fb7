"""The commands against a container in a process of its own, as scripts use them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from base64 import b64decode
from functools import partial
from typing import TYPE_CHECKING

import pytest
from proton import Message
from proton.utils import BlockingConnection

import cogwork
from cogwork.cli.exit_codes import ExitCode
from cogwork.config.password_hash import hash_password

from .served import COGWORK, OPEN, Served, ended, served, started, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "seven-spare-teeth"

CONFIGURATION = f"""{OPEN}
[[queue]]
address = "queue/small"
maximum_length = 2
maximum_length_policy = "reject"

[[user]]
name = "bob"
password_hash = "{hash_password(SECRET)}"
permissions = [{{ address = "queue/bobs", rights = ["send", "receive"] }}]
"""


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("commanded"), CONFIGURATION) as running:
        yield running


def failing(*arguments: str) -> tuple[int, str]:
    """Run a command that ends with an error; return its exit code and its one line."""
    done = ended(*arguments)
    assert done.stderr.startswith("cogwork: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.returncode, done.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_what_a_terminal_has_no_character_for_is_shown_as_json_writes_it(
    container: Served, encoding: str
) -> None:
    text = "caf\u00e9 \u2013 \u2603 \U0001f642"
    container.run("send", container.url, "queue/words", text)

    def shown(*arguments: str) -> bytes:
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        return subprocess.run(
            [*COGWORK, *arguments], capture_output=True, env=environment, timeout=30, check=True
        ).stdout

    peeked = shown("queue", "peek", container.url, "queue/words", "--json").decode(encoding)
    assert json.loads(peeked)["body"] == text
    plain = shown("receive", container.url, "queue/words", "--count", "1").decode(encoding)
    assert json.loads(f'"{plain.rstrip()}"') == text
    assert container.run("queue", "peek", container.url, "queue/words") == ""


@contextlib.contextmanager
def connected(container: Served) -> Iterator[BlockingConnection]:
    connection = BlockingConnection(container.url, timeout=10)
    yield connection
    connection.close()


def test_what_is_sent_is_received_in_order(container: Served, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("one\ntwo\n\nthrée, with a comma")
    container.run("send", container.url, "queue/order", "--file", str(lines))
    sent = container.run("send", container.url, "queue/order", "again", "--count", "2", "--json")
    assert json.loads(sent) == {
        "address": "queue/order",
        "sent": 2,
        "outcomes": {"accepted": 2},
        "problem": None,
    }
    printed = container.run("receive", container.url, "queue/order", "--count", "6")
    assert printed == "one\ntwo\n\nthrée, with a comma\nagain\nagain\n"
    assert container.address("queue/order")["depth"] == 0


def test_a_whole_message_is_a_line_of_json(container: Served) -> None:
    container.run(
        *("send", container.url, "queue/json", "body", "--subject", "S", "--property", "k=v=w"),
        *("--ttl", "60", "--durable"),
    )
    printed = container.run("receive", container.url, "queue/json", "--count", "1", "--json")
    message = json.loads(printed)
    assert message["body"] == "body"
    assert message["properties"]["subject"] == "S"
    assert message["application_properties"] == {"k": "v=w"}
    assert message["header"]["durable"] is True
    assert 50_000 < message["header"]["ttl"] <= 60_000


def test_bodies_of_any_kind_are_lines(container: Served) -> None:
    with connected(container) as connection:
        sender = connection.create_sender("queue/kinds")
        for body in ("text", b"bytes", b"\xff\x00", {"a": [1, None]}, 5, True, None):
            sender.send(Message(body=body, inferred=isinstance(body, bytes)))
    printed = container.run("receive", container.url, "queue/kinds", "--count", "7")
    assert printed.splitlines() == [
        *("text", "bytes", '{"base64": "/wA="}', '{"a": [1, null]}', "5", "true", "null")
    ]


def test_lines_come_from_stdin_as_they_are_typed(container: Served) -> None:
    with started("send", container.url, "queue/stdin", "--file", "-") as sender:
        assert sender.stdin is not None
        for line in ("a\n", "b\n"):
            sender.stdin.write(line)
            sender.stdin.flush()
            assert container.run("receive", container.url, "queue/stdin", "--count", "1") == line
        out, err = sender.communicate("c", timeout=20)
        assert (sender.returncode, out, err) == (0, "", "")
    assert container.run("receive", container.url, "queue/stdin", "--count", "1") == "c\n"


def test_enough_lines_end_it_while_stdin_is_open(container: Served) -> None:
    with started("send", container.url, "queue/two", "--file", "-", "--count", "2") as sender:
        assert sender.stdin is not None
        sender.stdin.write("a\nb\nc\n")
        sender.stdin.flush()
        assert sender.wait(20) == 0, "it waits for no more"
    assert container.run("receive", container.url, "queue/two", "--count", "2") == "a\nb\n"
    assert container.address("queue/two")["depth"] == 0


def test_presettled_messages_arrive_too(container: Served) -> None:
    told = container.run(
        *("send", container.url, "queue/pre", "x", "--count", "2500", "--presettled", "--json")
    )
    assert json.loads(told)["outcomes"] == {"presettled": 2500}, "nobody asked for outcomes"
    within(30, lambda: container.address("queue/pre")["depth"] == 2500, "all are there")


def test_what_is_not_accepted_is_8(container: Served) -> None:
    done = ended("send", container.url, "queue/small", "x", "--count", "5", "--json")
    assert done.returncode == ExitCode.NOT_ACCEPTED
    assert "2 accepted, 3 rejected" in done.stderr
    told = json.loads(done.stdout)
    assert (told["sent"], told["outcomes"]) == (5, {"accepted": 2, "rejected": 3})
    assert told["problem"]


def test_what_is_no_wildcard_is_told(container: Served) -> None:
    asked = ("receive", container.url, "topic/fli*.eu", "--timeout", "0.3")
    done = ended(*asked)
    assert (done.returncode, done.stdout) == (ExitCode.OK, "")
    told = "cogwork: fli* is an ordinary word: * and # are wildcards only as whole words\n"
    assert told in done.stderr


def test_nothing_in_time_is_7(container: Served) -> None:
    asked = ("receive", container.url, "queue/empty", "--timeout", "0.3")
    done = ended(*asked, "--count", "1")
    assert (done.returncode, done.stdout) == (ExitCode.TIMEOUT, "")
    assert done.stderr == "cogwork: nothing more came for 0.3 s: 0 of 1 messages\n"
    assert container.run(*asked) == "", "without a count it is no failure"


def test_what_is_no_message_is_told(container: Served) -> None:
    async def publish() -> None:
        async with cogwork.connect(container.url) as client, client.publisher("queue/none") as out:
            await out.post_encoded([b"\x00\x53\x77\x99", cogwork.Message("one").encode()])

    asyncio.run(publish())
    done = ended("receive", container.url, "queue/none", "--count", "1")
    assert (done.returncode, done.stdout) == (ExitCode.OK, "one\n")
    told = "cogwork: rejected 1 malformed message, not printed\n"
    assert done.stderr == told


def test_what_cannot_be_read_is_shown_as_octets_and_accepted(container: Served) -> None:
    no_text = b"\x00\x53\x77\xa1\x01\xff"  # an amqp-value, a string that is no UTF-8
    no_properties = b"\x00\x53\x74\xc1\x04\x02\xa1\x01\xff\x00\x53\x75\xa0\x01a"

    async def publish() -> None:
        async with cogwork.connect(container.url) as client, client.publisher("queue/odd") as out:
            await out.post_encoded([no_text, no_properties, cogwork.Message("one").encode()])

    asyncio.run(publish())
    octets, body = '{"base64": "AFN3oQH/", "problem": "amqp:decode-error: string is not UTF-8', "a"
    peeked = container.run("queue", "peek", container.url, "queue/odd").splitlines()
    assert [line.split("\t")[2][:40] for line in peeked] == [octets[:40], body, "one"]
    peeked = container.run("queue", "peek", container.url, "queue/odd", "--json").splitlines()
    assert [json.loads(line)["body"] for line in peeked] == [None, "a", "one"]
    lines = container.run("receive", container.url, "queue/odd", "--count", "3").splitlines()
    assert lines[0].startswith(octets)
    assert lines[1:] == [body, "one"]
    assert container.address("queue/odd")["depth"] == 0
    asyncio.run(publish())
    told = container.run("receive", container.url, "queue/odd", "--count", "3", "--json")
    rows = [json.loads(line) for line in told.splitlines()]
    assert [row["body"] for row in rows] == [None, "a", "one"]
    assert [b64decode(row["message"]["base64"]) for row in rows[:2]] == [no_text, no_properties]


def test_a_reader_that_leaves_loses_nothing(container: Served) -> None:
    container.run("send", container.url, "queue/head", "x", "--count", "5000")
    with started("receive", container.url, "queue/head") as reader:
        assert reader.stdout is not None
        assert reader.stderr is not None
        assert reader.stdout.readline() == "x\n"
        reader.stdout.close()
        container.run("send", container.url, "queue/head", "y")  # what it cannot print any more
        assert "Traceback" not in reader.stderr.read()
        assert reader.wait(20) == ExitCode.BROKEN_PIPE


def test_a_reader_that_leaves_is_missed_though_nothing_comes(container: Served) -> None:
    container.run("send", container.url, "queue/quiet", "x")
    with started("receive", container.url, "queue/quiet") as reader:
        assert reader.stdout is not None
        assert reader.stderr is not None
        assert reader.stdout.readline() == "x\n"
        reader.stdout.close()
        assert reader.wait(20) == ExitCode.BROKEN_PIPE
        assert reader.stderr.read() == ""
    assert container.address("queue/quiet")["depth"] == 0


def is_attached(container: Served, address: str) -> bool:
    return any(link["address"] == address for link in container.status()["links"])


def test_ctrl_c_ends_without_a_traceback(container: Served) -> None:
    for arguments in (("receive", container.url, "queue/none"), ("send", container.url, "no", "x")):
        with started(*arguments) as process:
            within(30, partial(is_attached, container, arguments[2]), "it waits")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
            assert (process.returncode, out) == (ExitCode.INTERRUPTED, "")
            assert "Traceback" not in err


def test_a_sender_without_credit_says_what_it_waits_for(container: Served) -> None:
    with started("send", container.url, "nobody/here", "x") as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert "nobody/here is full, or nobody receives there: no prefix says" in said
        assert "as queue/nobody/here or stream/nobody/here would" in said
        assert container.run("receive", container.url, "nobody/here", "--count", "1") == "x\n"
        assert process.wait(10) == ExitCode.OK


def test_a_call_is_answered(container: Served) -> None:
    with connected(container) as connection:
        receiver = connection.create_receiver("service/echo", credit=10)
        with started("call", container.url, "service/echo", "hello", "--json") as caller:
            request = receiver.receive()
            receiver.accept()
            reply = Message(
                address=request.reply_to,
                correlation_id=request.correlation_id or request.id,
                body=f"{request.body!s} to you",
            )
            connection.create_sender(None).send(reply)
            out, err = caller.communicate(timeout=10)
            assert (caller.returncode, err) == (0, "")
            assert json.loads(out)["body"] == "hello to you"


def test_a_call_that_nobody_answers_is_7(container: Served) -> None:
    with connected(container) as connection:
        connection.create_receiver("service/mute", credit=10)
        code, line = failing("call", container.url, "service/mute", "hello", "--timeout", "0.5")
        assert code == ExitCode.TIMEOUT
        assert line == "cogwork: service/mute: no reply within 0.5 s\n"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("send", "tomato", "a", "b"), ExitCode.USAGE, "(expected one of amqp://"),
        (("send", "amqp://127.0.0.1:1", "a", "b"), ExitCode.CONNECTION, "refused"),
        (("status", "amqp://no.such.host.invalid"), ExitCode.CONNECTION, "no.such.host.invalid"),
        (("status", "{url}/blue"), ExitCode.NOT_FOUND, "virtual host 'blue' is not served here"),
        (("status", "{bob}"), ExitCode.AUTHENTICATION, "no permission to send at '$management'"),
        (("send", "{bob}", "queue/anns", "x"), ExitCode.AUTHENTICATION, "no permission to send"),
        (("receive", "{bob}", "queue/anns"), ExitCode.AUTHENTICATION, "no permission to receive"),
        (("status", "{wrong}"), ExitCode.AUTHENTICATION, "authentication"),
        (("send", "{url}", "exchange/a", "x"), ExitCode.NOT_FOUND, "there is no exchange 'a'"),
        (("send", "{url}", "stream/a", "x"), ExitCode.NOT_FOUND, "there is no stream"),
        (("receive", "{url}", "stream/a", "--from", "first"), ExitCode.NOT_FOUND, "no stream"),
        (("receive", "{url}", "a", "--from", "noon"), ExitCode.USAGE, "is not a place in a stream"),
        (
            ("receive", "{url}", "a", "--from", str(2**64)),
            ExitCode.USAGE,
            "is not a place in a stream",
        ),
        (("send", "{url}", "", "x"), ExitCode.USAGE, 'the address "" is empty'),
        (("schema", "show", "{url}", "none/here"), ExitCode.NOT_FOUND, "has no schema"),
        (("schema", "show", "{url}", ""), ExitCode.USAGE, 'the address "" is empty'),
        (("schema", "show", "{url}", "none/b#"), ExitCode.USAGE, "words only, as in none/b.#"),
        (("schema", "check", "{url}", "/", "-"), ExitCode.USAGE, 'the address "/" is empty'),
        (("schema", "check", "{url}", "none/*b", "-"), ExitCode.USAGE, "as in none/*.b"),
        (("schema", "register", "{url}", "none/b#", "-"), ExitCode.USAGE, "as in none/b.#"),
        (("schema", "unregister", "{url}", "none/b#"), ExitCode.USAGE, "as in none/b.#"),
        (("schema", "unregister", "{url}", "none/here"), ExitCode.NOT_FOUND, "has no schema"),
        (("stream", "show", "{url}", "a"), ExitCode.NOT_FOUND, "there is no stream"),
        (("rpc", "{url}", "a/b", "c"), ExitCode.USAGE, "a name without '/' is expected"),
        (("stream", "create", "{url}", "a", "--engine", "x"), ExitCode.ERROR, "no engine 'x'"),
        (("stream", "create", "{url}", "a", "--capture", "b#"), ExitCode.ERROR, "whole words only"),
        (("link", "add", "{url}", "foo"), ExitCode.USAGE, 'found "foo", expected HOST:PORT'),
        (("link", "remove", "{url}", "foo"), ExitCode.USAGE, 'found "foo", expected HOST:PORT'),
        (("link", "add", "{url}", "{here}"), ExitCode.ERROR, "where this container listens itself"),
        (("link", "add", "{url}", "{local}"), ExitCode.ERROR, "another container is expected"),
        (("queue", "declare", "{url}", "queue/a\nb"), ExitCode.ERROR, "cannot be seen"),
        (("send", "{url}", "queue/a\nb", "text"), ExitCode.ERROR, "cannot be seen"),
        (("receive", "{url}", "work/a\x1bb"), ExitCode.ERROR, "cannot be seen"),
        (("stream", "show", "{url}", "a"), ExitCode.NOT_FOUND, "cogwork: there is no stream"),
        (("receive", "{url}", "sink/a"), ExitCode.ERROR, "nothing can be received from it"),
        (("send", "{url}", "a", "--file", "gone"), ExitCode.USAGE, "No such file or directory"),
        (("queue", "purge", "{url}", "queue/gone"), ExitCode.NOT_FOUND, "no queue 'queue/gone'"),
        (("queue", "move", "{url}", "queue/gone", "b"), ExitCode.NOT_FOUND, "no queue"),
        (
            ("queue", "move", "{url}", "queue/small", "queue/gone"),
            ExitCode.NOT_FOUND,
            "the target 'queue/gone' is no queue, or not declared yet",
        ),
        *(
            (tuple(words.split()), ExitCode.USAGE, f"argument {number}: found '{found}', expected")
            for words, number, found in (
                ("send {url} queue/\udcff x", 3, r"queue/\xff"),
                ("send {url} queue/small \udcff", 4, r"\xff"),
                ("receive {url} a\udce4b --count 1", 3, r"a\xe4b"),
                ("rpc {url} a\udcff m", 3, r"a\xff"),
                ("rpc {url} a m k=\udcff", 5, r"k=\xff"),
                ("link add {url} \udcff:1", 4, r"\xff:1"),
                ("send amqp://a\udcff:1 a b", 2, r"amqp://a\xff:1"),
            )
        ),
        (("rpc", "{url}", "a", "m", "--exchange", "a/b"), ExitCode.USAGE, "exchange: a name"),
        (("rpc", "{url}", "a", "m", "--exchange", ""), ExitCode.USAGE, "exchange: a name"),
        (
            ("queue", "declare", "{url}", "topic/a"),
            ExitCode.ERROR,
            "a topic, which is no queue",
        ),
    ],
)
def test_what_goes_wrong_is_one_line_and_a_code(
    container: Served, arguments: tuple[str, ...], code: ExitCode, says: str
) -> None:
    urls = {
        "url": container.url,
        "bob": container.url.replace("://", f"://bob:{SECRET}@"),
        "here": container.url.removeprefix("amqp://"),
        "local": container.url.replace("127.0.0.1", "localhost"),
        "wrong": container.url.replace("://", "://bob:wrong@"),
    }
    found, line = failing(*(argument.format(**urls) for argument in arguments))
    assert says in line
    assert found == code
    assert SECRET not in line


def test_a_line_that_is_no_text_is_named(container: Served, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes("grün\n".encode() + b"\xff\xfe\n")
    code, line = failing("send", container.url, "queue/lines", "--file", str(file))
    assert code == ExitCode.ERROR
    assert line == "cogwork: line 2: invalid byte 0xff (expected text in UTF-8)\n"
    container.run("send", container.url, "queue/lines", "--file", str(file), "--count", "1")
    assert container.run("receive", container.url, "queue/lines", "--count", "1") == "grün\n"


def test_status_shows_people_the_same_as_programs(container: Served) -> None:
    with connected(container) as connection:
        receiver = connection.create_receiver("topic/shown.#", credit=33, name="shown")
        connection.create_sender("topic/shown.one").link.send(Message(body="x"))
        receiver.receive()
        sender = connection.create_sender("queue/shown")
        for priority in (4, 9):
            sender.send(Message(body="x", priority=priority))
        worker = connection.create_receiver("queue/shown", credit=2)
        assert [worker.receive().priority for _ in range(2)] == [9, 4]
        found = container.status()
        shown = container.run("status", container.url)
    (link,) = (row for row in found["links"] if row["link"] == "shown")
    assert (link["deliveries"], link["unsettled"]) == (1, 1)
    assert link["credit"] > 0
    assert found["container"]["process_id"] == container.process.pid
    assert {row["address"] for row in found["addresses"]} >= {"topic/shown.one"}
    (queue,) = (row for row in found["queues"] if row["address"] == "queue/shown")
    assert [queue[f"disorder-{each}"] for each in ("p50", "p99", "maximum")] == [0, 1, 1]
    for word in ("connections", "topic/shown.#", "topic/shown.one", "multicast", "resident"):
        assert word in shown
    (row,) = (line for line in shown.splitlines() if line.split()[:2] == ["queue/shown", "memory"])
    assert row.split()[-3:] == ["0", "1", "1"]
    nodes = shown.partition("nodes (")[2]
    (node,) = (line for line in nodes.splitlines() if line.split()[:1] == ["queue/shown"])
    assert node.split() == ["queue/shown", "queue", "see", "queues"], "its figures stand above"
