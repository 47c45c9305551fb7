"""Runs a tutorial: its blocks, in their order, as a reader would.

- A block with a file's name as its title is written to that file.
- A block of `sh` is run to its end. What it prints is the block of `text` that follows, if there
  is one.
- A block of `sh` whose title is a terminal stays there: until `^C` in a block of `text` of that
  terminal, or the end of the page. Any other `text` of a terminal is awaited there.

In text `…` stands for anything. Every page has a port of its own in place of 5672.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, Self

__all__ = ("Block", "Tutorial", "blocks_of", "matches")

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
TERMINAL = "Terminal "
INTERRUPT = "^C\n"
WITHOUT_PORT = re.compile(r"(amqp://(?:\w+@)?(?:localhost|127\.0\.0\.\d))(?![\d:])")
TIMEOUT_S = 100.0
END_S = 15.0


class Block(NamedTuple):
    """A block of a page.

    Attributes:
        line: Where it begins.
        language: What the page says it is.
        title: A file, a terminal, or nothing.
        text: What is in it.
    """

    line: int
    language: str
    title: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    """List the blocks of a page."""
    text = page.read_text()
    return [
        Block(text.count("\n", 0, found.start()) + 1, found[1], found[2] or "", found[3])
        for found in BLOCK.finditer(text)
    ]


def matches(expected: str, printed: str, *, whole: bool = True) -> bool:
    """Return whether a page shows what was printed, or a part of it."""
    lines = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    pattern = ".*?".join(map(re.escape, expected.strip().split("…")))
    find = re.fullmatch if whole else re.search
    return find(pattern, lines, re.DOTALL) is not None


class _Terminal:
    """A program that goes on while the reader works elsewhere."""

    def __init__(self, command: str, log: Path, folder: Path, environment: dict[str, str]) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def shows(self, expected: str) -> None:
        """Wait until something was printed."""
        until = time.monotonic() + TIMEOUT_S
        while not matches(expected, self._log.read_text(), whole=False):
            assert self._process.poll() is None, f"it ended: {self._log.read_text()[-3000:]}"
            assert time.monotonic() < until, (
                f"not printed: {expected}\n{self._log.read_text()[-3000:]}"
            )
            time.sleep(0.05)

    def interrupt(self) -> None:
        """Press Ctrl-C, and wait for the end."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Tutorial:
    """Runs a page's blocks in a folder; a context that ends what they started."""

    def __init__(self, page: Path, folder: Path, port: int, **environment: str) -> None:
        self._blocks = blocks_of(page)
        self._folder = folder
        self._port = port
        programs = str(Path(sys.executable).parent)
        self._environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "200",
            **environment,
        }
        self._terminals: dict[str, _Terminal] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for terminal in reversed(self._terminals.values()):
            terminal.interrupt()

    def run(self) -> None:
        """Run every block.

        Raises:
            AssertionError: A program fails, or prints something else.
        """
        printed: str | None = None
        for block in self._blocks:
            text = self._own(block.text)
            if block.language == "text" and block.title:
                self._look(block.title, text)
            elif block.language == "text":
                assert printed is not None, f"line {block.line}: nothing was run"
                assert matches(text, printed), f"line {block.line}: {text}\nprinted:\n{printed}"
            elif block.language == "sh" and block.title.startswith(TERMINAL):
                log = self._folder / f"{block.title}.log"
                started = _Terminal(text, log, self._folder, self._environment)
                self._terminals[block.title] = started
            elif block.language == "sh":
                printed = self._run(text, block.line)
            elif block.title:
                (self._folder / block.title).write_text(text)

    def _own(self, text: str) -> str:
        """Put the port of this run in place of the usual one."""
        text = re.sub(r"\b5672\b", str(self._port), text)
        text = WITHOUT_PORT.sub(rf"\1:{self._port}", text)
        return re.sub(
            r"^cogwork serve(?! --config)", rf"cogwork serve --listen 127.0.0.1:{self._port}", text
        )

    def _look(self, terminal: str, text: str) -> None:
        if text == INTERRUPT:
            self._terminals[terminal].interrupt()
        else:
            self._terminals[terminal].shows(text)

    def _run(self, script: str, line: int) -> str:
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"line {line}: exit code {done.returncode}: {done.stdout}"
        return done.stdout
