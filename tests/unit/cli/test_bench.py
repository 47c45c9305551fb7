"""`cogwork bench` from the outside: names, one-line errors, exit codes."""

from socket import create_server
from threading import Thread

import pytest

from cogwork.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["bench", *words])
    captured = capsys.readouterr()
    return int(stopped.value.code or 0), captured.out + captured.err


def test_the_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run(capsys, "--list")
    assert code == 0
    assert "presettled" in said
    assert "request-reply" in said


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("amqp://127.0.0.1", "--scenario", "none"), 2, "'none' is not one of 'presettled'"),
        (("amqp://127.0.0.1", "--size", "3"), 2, "16"),
        (("http://127.0.0.1",), 1, "expected one such as amqp://localhost:5672"),
    ],
)
def test_wrong_words_are_named(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, text: str
) -> None:
    found, said = run(capsys, *words)
    assert found == code
    assert text in said


def test_nobody_listening_is_one_line_and_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    with create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    code, said = run(capsys, f"amqp://127.0.0.1:{port}")
    assert code == 4
    assert said.strip() == f"cogwork: cannot connect to 127.0.0.1:{port}: Connection refused"


def test_a_peer_that_hangs_up_is_one_line_and_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    with create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def hang_up() -> None:
            server.accept()[0].close()

        hanging_up = Thread(target=hang_up)
        hanging_up.start()
        code, said = run(capsys, f"amqp://127.0.0.1:{port}")
        hanging_up.join()
    assert code == 4
    assert said.startswith(f"cogwork: 127.0.0.1:{port}: the ")
    assert said.count("\n") == 1
