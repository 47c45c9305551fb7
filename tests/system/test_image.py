"""The image of `Dockerfile`, as far as that can be tried without an engine for images.

Its last stage is made in a copy-on-write view of this machine: there its steps run, and then its
command, as its user, with a read-only root, as an engine would run them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cogwork.bench.servers.process import free_ports

from .served import READY_TIMEOUT_S, within

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]

WRITABLE = "/var/lib/cogwork"

MADE = """
set -e
mount -t tmpfs tmpfs {folder}
mkdir {folder}/upper {folder}/work {folder}/root {folder}/volume
mount -t overlay overlay -o lowerdir=/,upperdir={folder}/upper,workdir={folder}/work {folder}/root
cd {folder}/root
chmod a+x root {parents}
rm -rf .{program}
ln -s {environment} .{program}
mount --bind /dev dev
mount -t proc proc proc
rm -f etc/passwd- etc/group-
sed -i /^cogwork:/d etc/passwd etc/group etc/shadow
sed -i '/:1000:/d' etc/passwd etc/group
chroot . sh -c {steps}
install -D -m 0644 {configuration} etc/cogwork/cogwork.toml
mount --bind {folder}/volume .{writable}
chown 1000:1000 .{writable}
chmod 0700 .{writable}
mount -o remount,ro,bind . . 2>/dev/null || mount -o remount,ro {folder}/root
exec sleep infinity
"""


class Stage:
    """The last stage of the Dockerfile.

    Attributes:
        values: What each instruction says, by its name; of several the last one.
    """

    def __init__(self) -> None:
        """Read it."""
        text = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        first = max(at for at, line in enumerate(lines) if line.startswith("FROM"))
        self.values: dict[str, str] = dict(line.split(maxsplit=1) for line in lines[first:])

    @property
    def command(self) -> list[str]:
        """What is run."""
        return [*json.loads(self.values["ENTRYPOINT"]), *json.loads(self.values["CMD"])]

    @property
    def health(self) -> list[str]:
        """What says whether that is well."""
        found: list[str] = json.loads(self.values["HEALTHCHECK"].partition(" CMD ")[2])
        return found


class Image:
    """The stage, made."""

    def __init__(self, stage: Stage, root: Path, maker: int, port: int) -> None:
        self.stage = stage
        self._port = port
        self._words = [
            *("nsenter", "--mount", "--target", str(maker), "chroot", "--userspec", "1000:1000"),
            *(str(root), "env", "-i", "HOME=/var/lib/cogwork", "PYTHONDONTWRITEBYTECODE=1"),
            stage.values["ENV"].replace("$PATH", os.defpath),
        ]

    def start(self, words: list[str]) -> subprocess.Popen[str]:
        """Start a command in it, with the port of this test in place of the image's."""
        placed = [each.replace("5672", str(self._port)) for each in words]
        return subprocess.Popen(
            [*self._words, *placed], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, *words: str) -> tuple[int, str]:
        """Run one to its end; return its exit code and what it said."""
        process = self.start(list(words))
        said, _ = process.communicate(timeout=60)
        return process.returncode, said


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Image]:
    """Make the image."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "chroot"))):
        pytest.skip("only root can make a view of the machine to change root to")
    stage = Stage()
    (port,) = free_ports(1)
    configuration = tmp_path / "cogwork.toml"
    configuration.write_text(f'id = "image"\n\n[[listen]]\nhost = "127.0.0.1"\nport = {port}\n')
    folder = tmp_path / "view"
    folder.mkdir()
    environment = Path(sys.prefix)
    places = {*environment.parents, *Path(sys.executable).resolve().parents, *ROOT.parents, ROOT}
    script = MADE.format(
        folder=folder,
        parents=" ".join(shlex.quote(f".{each}") for each in sorted(places)),
        program=stage.values["COPY"].split()[-1],
        environment=environment,
        steps=shlex.quote(stage.values["RUN"]),
        configuration=configuration,
        writable=WRITABLE,
    )
    log = (tmp_path / "log").open("w+")
    maker = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script], stdout=log, stderr=subprocess.STDOUT
    )
    try:
        within(READY_TIMEOUT_S, lambda: _is_made(maker), "the image is made")
        if maker.poll() is not None:
            said = (tmp_path / "log").read_text()
            if "mount:" in said or "unshare:" in said:
                pytest.skip(f"this machine has no such views: {said.strip()[-200:]}")
            pytest.fail(said)
        yield Image(stage, folder / "root", maker.pid, port)
    finally:
        maker.kill()
        maker.wait()
        log.close()


def _is_made(maker: subprocess.Popen[bytes]) -> bool:
    """Return whether a view is there, or will never be."""
    if maker.poll() is not None:
        return True
    return Path(f"/proc/{maker.pid}/cmdline").read_bytes().startswith(b"sleep")


def test_the_image_serves_is_healthy_and_stops(image: Image) -> None:
    assert image.stage.values["USER"] == "cogwork"
    assert image.stage.values["VOLUME"] == WRITABLE
    assert image.run(*image.stage.health)[0] != 0, "nobody listens yet"
    process = image.start(image.stage.command)
    try:
        within(READY_TIMEOUT_S, lambda: image.run(*image.stage.health)[0] == 0, "it is healthy")
        url = "amqp://127.0.0.1:5672"
        assert image.run("cogwork", "send", url, "queue/kept", "a") == (0, "")
        code, listed = image.run("cogwork", "queue", "list", url, "--json")
        (row,) = (each for each in json.loads(listed) if each["address"] == "queue/kept")
        assert (code, row["durability"], row["depth"]) == (0, "auto", 1)
        assert image.run("sh", "-c", "echo > /tmp/nothing")[0] != 0, "its root is read-only"
        assert image.run("id", "-u") == (0, "1000\n")
    finally:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 0, said


def test_what_is_sent_to_the_engine_is_what_the_build_needs() -> None:
    lines = (ROOT / ".dockerignore").read_text().split()
    taken = {each.removeprefix("!") for each in lines if each.startswith("!")}
    assert all((ROOT / each).exists() for each in taken)
    project = (ROOT / "pyproject.toml").read_text()
    named = re.findall(r'^(?:readme = |license-files = \[)"([^"]+)"', project, re.MULTILINE)
    assert taken >= {"src", "setup.py", "pyproject.toml", *named}
