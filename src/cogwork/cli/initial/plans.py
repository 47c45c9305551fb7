"""The files that `cogwork init` writes: all are made in memory before the first is written."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cogwork.cli.initial.machines import AMQPS, Machine
from cogwork.cli.initial.secrets import Login
from cogwork.cli.initial.texts import ADMIN, mesh_text, single_text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("FILE", "Plan", "plan_mesh", "plan_single")

FILE = "cogwork.toml"
AUTHORITY = "ca"

SECRET_MODE, OPEN_MODE = 0o600, 0o644
FOLDER_MODE = 0o755
"""What is secret has its own mode; whether others may look into a folder is its owner's affair."""


@dataclass
class Plan:
    """Files to be written.

    Attributes:
        machines: Whose they are.
        files: Their contents and modes, by where they are below the folder.
        folders: Where each machine's files are below it, by the machine's id.
        admin: The user that manages the containers; None where nobody logs in.
        tls: Whether they speak TLS.
    """

    machines: Sequence[Machine]
    tls: bool
    files: dict[Path, tuple[bytes, int]] = field(default_factory=dict, repr=False)
    folders: dict[str, Path] = field(default_factory=dict)
    admin: str | None = None

    def existing(self, folder: Path) -> list[Path]:
        """List what is in the way in a folder."""
        return [folder / name for name in self.files if os.path.lexists(folder / name)]

    def write(self, folder: Path) -> None:
        """Write the files below a folder.

        Raises:
            OSError: One of them is there, or cannot be written.
        """
        for name, (content, mode) in self.files.items():
            path = folder / name
            path.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            # With its mode from the start: nobody reads a secret while it is written.
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)

    def put(self, name: Path, text: str | bytes, *, secret: bool = True) -> None:
        """Add a file; one that is secret can be read by its owner alone."""
        content = text.encode() if isinstance(text, str) else text
        self.files[name] = (content, SECRET_MODE if secret else OPEN_MODE)

    def configure(self, machine: Machine, below: Path, text: str) -> None:
        """Add the configuration of a machine, in a folder of its own."""
        self.folders[machine.id] = below
        self.put(below / FILE, text)

    def manage(self, login: Login) -> None:
        """Add the password of who manages the containers."""
        self.admin = ADMIN
        self.put(Path(f"{ADMIN}.password"), f"{login.password}\n")

    def certify(self) -> None:
        """Have an authority issue a certificate to each machine, and one to who manages them."""
        # It needs a library that a container does not.
        from cogwork.tls.authority import Authority  # noqa: PLC0415  # of an extra

        authority = Authority("Cogwork private authority")
        self.put(Path(AUTHORITY) / "ca.pem", authority.certificate, secret=False)
        self.put(Path(AUTHORITY) / "ca.key", authority.key)
        for machine in self.machines:
            below = self.folders[machine.id] / "tls"
            # Its own programs may reach it by the names of this machine, too.
            hosts = dict.fromkeys((machine.host, "localhost", "127.0.0.1", "::1"))
            self.put(below / "ca.pem", authority.certificate, secret=False)
            self.put(below / f"{machine.id}.pem", authority.issue(machine.id, list(hosts)))


def plan_single(machine_id: str, host: str, *, tls: bool) -> Plan:
    """Plan one machine.

    Args:
        machine_id: The container's id.
        host: The machine's name, where clients elsewhere reach it by TLS.
        tls: Whether it listens to them; else programs of this machine use it alone.
    """
    machine = Machine(machine_id, host, AMQPS)
    plan = Plan([machine], tls)
    admin = Login.new() if tls else None
    plan.configure(machine, Path(), single_text(machine, admin))
    if admin is not None:
        plan.manage(admin)
        plan.certify()
    return plan


def plan_mesh(machines: Sequence[Machine], *, tls: bool) -> Plan:
    """Plan machines that are linked, each with a folder of its own.

    Args:
        machines: All of them.
        tls: Whether they speak TLS, and know each other by certificates.
    """
    plan = Plan(machines, tls)
    admin, mesh = Login.new(), None if tls else Login.new()
    for machine in machines:
        below = Path(machine.id)
        plan.configure(machine, below, mesh_text(machine, machines, admin, mesh))
        if mesh is not None:
            plan.put(below / "mesh.password", f"{mesh.password}\n")
    plan.manage(admin)
    if tls:
        plan.certify()
    return plan
