"""The security log of a running container: who came, who was refused, and who changed what."""

from __future__ import annotations

import json
import os
import signal
import stat
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork.config.password_hash import hash_password

from .linked import linked
from .served import Served, ran, served, within
from .stories import story

if TYPE_CHECKING:
    from pathlib import Path

SECRET, WRONG, OF_LINK = "open-sesame", "xyzzy-wrong", "hunter2"
HASH = hash_password(SECRET)
CONFIGURATION = f"""
[security_log]
to = "file"
path = "security.log"
[[user]]
name = "root"
password_hash = "{HASH}"
permissions = [
  {{ address = "#", rights = ["send", "receive", "manage"] }},
  {{ address = "$management", rights = ["send", "manage"] }},
]
"""
ANN = f"""
[[user]]
name = "ann"
password_hash = "{HASH}"
permissions = [
  {{ address = "queue/a", rights = ["send", "receive"] }},
  {{ address = "$management", rights = ["send"] }},
]
"""


def as_user(at: Served, name: str, password: str = SECRET) -> str:
    return at.url.replace("://", f"://{name}:{password}@")


def events(folder: Path) -> list[dict[str, Any]]:
    text = "".join(path.read_text() for path in sorted(folder.glob("security.log*"), reverse=True))
    return [json.loads(line) for line in text.splitlines()]


def told(folder: Path, **wanted: object) -> bool:
    return any(wanted.items() <= each.items() for each in events(folder))


def expect(folder: Path, **wanted: object) -> None:
    within(30, lambda: told(folder, **wanted), f"the log tells of {wanted}")


def test_what_happened_is_told_and_no_secret(tmp_path: Path) -> None:
    with served(tmp_path, CONFIGURATION + ANN) as at:
        root, ann = as_user(at, "root"), as_user(at, "ann")
        assert ran("status", as_user(at, "root", WRONG)).returncode
        expect(tmp_path, event="login_refused", user="root")
        assert ran("send", ann, "queue/b", "x").returncode
        expect(tmp_path, event="login", user="ann")
        expect(tmp_path, event="attach_refused", user="ann", address="queue/b", direction="in")
        assert ran("queue", "declare", ann, "queue/c").returncode
        expect(tmp_path, event="management_refused", user="ann", operation="CREATE", name="queue/c")
        at_root = as_root(root)
        at_root("queue", "declare", "queue/one")
        at_root("queue", "declare", "queue/two")
        at_root("queue", "move", "queue/one", "queue/two")
        at_root("queue", "purge", "queue/two")
        at_root("queue", "delete", "queue/one")
        at_root("link", "add", f"amqp://x:{OF_LINK}@127.0.0.1:1")
        for operation in ("CREATE", "MOVE", "PURGE", "DELETE"):
            expect(tmp_path, event="management", user="root", operation=operation, type="queue")
        expect(tmp_path, event="management", type="org.cogwork.link", name="127.0.0.1:1")
        checks_rotation(tmp_path, at)
        status = json.loads(at_root("status", "--json"))
        facts = status["container"]["security_log"]
        assert facts["to"] == "file"
        assert facts["dropped"] == 0
        assert facts["written"] >= len(events(tmp_path)) - 1
    expect(tmp_path, event="stopped")
    everything = "".join(path.read_text() for path in tmp_path.glob("security.log*"))
    for secret in (SECRET, WRONG, OF_LINK, "scrypt$"):
        assert secret not in everything


def as_root(url: str) -> Any:
    """Return what runs a command that names the container after its own words."""

    def run(*words: str) -> str:
        count = 1 if words[0] == "status" else 2
        found = ran(*words[:count], url, *words[count:])
        assert found.returncode == 0, found.stderr
        return found.stdout

    return run


def checks_rotation(folder: Path, at: Served) -> None:
    """Move the file away, and take a user out of the configuration."""
    path = folder / "security.log"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.rename(folder / "security.log.1")
    configuration = folder / "cogwork.toml"
    whole = configuration.read_text()
    configuration.write_text(whole.replace(ANN, ""))
    os.kill(at.process.pid, signal.SIGHUP)
    expect(folder, event="reloaded", changes=["user[ann]: removed"])
    assert "reloaded" in path.read_text()
    configuration.write_text("[oops]\n")
    os.kill(at.process.pid, signal.SIGHUP)
    expect(folder, event="reload_refused")


async def first_event(mesh: cogwork.Client, kind: str) -> dict[str, Any]:
    """Read the stream until there is an event of a kind."""
    async with mesh.stream("$security").read(start="first") as reader:
        async for record in reader:
            event: dict[str, Any] = json.loads(record.body)
            if event["event"] == kind:
                return event
    raise AssertionError("the stream has ended")


@story
async def test_only_who_is_named_reads_the_stream() -> None:
    users = "".join(
        f'[[user]]\nname = "{name}"\npassword_hash = "{HASH}"\n'
        f'permissions = [{{ address = "{address}", rights = ["receive"], vhost = "*" }}]\n'
        for name, address in (("auditor", "stream/$security"), ("ann", "#"))
    )
    async with linked() as mesh:
        await mesh.start("a", configuration=f'{users}[security_log]\nto = "stream"\n')
        container = mesh.containers["a"]
        url = container.endpoints[0]

        def login(name: str) -> Any:
            return cogwork.connect(url.replace("://", f"://{name}:{SECRET}@"))

        async with login("ann") as ann:
            with pytest.raises(cogwork.CogworkError, match="no wildcard reaches it"):
                await first_event(ann, "attach_refused")
        async with login("auditor") as auditor:
            event = await first_event(auditor, "attach_refused")
        assert (event["user"], event["address"]) == ("ann", "stream/$security")
        facts = container.security.facts()
        assert facts is not None
        assert facts["dropped"] == 0
