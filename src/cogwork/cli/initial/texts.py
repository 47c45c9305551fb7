"""The texts of configurations: each key with what it is for, and examples to be uncommented.

A line that begins with `# ` is prose, one that begins with `#` alone is a key with a value that
somebody may want. Whatever is uncommented, the file can be used: a test does so.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cogwork.cli.initial.machines import primaries_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cogwork.cli.initial.machines import Machine
    from cogwork.cli.initial.secrets import Login

__all__ = ("ADMIN", "MESH", "mesh_text", "single_text")

ADMIN, MESH = "admin", "mesh"
"""The users: who manages the containers, and who a container is to others without TLS."""

HEAD = """\
# The container {id}: one machine of {machines}. Written by `cogwork init`.
#
# Check it with    cogwork doctor --config cogwork.toml
# Start it with    cogwork serve --config cogwork.toml
#
# SIGHUP has it read again. All keys are described in docs/configuration.md. Names of files are
# looked for in the directory of this file.

# What others know this container by; each container of a mesh has its own id.
id = {id_text}

# Where queues on disk, streams and declarations are kept; without it nothing outlives the process.
data_dir = "data"

# Processes that share the work, at most one for each core. Each is a container of its own.
#workers = 2
"""

LOOPBACK = """
# Where clients connect, by AMQP 1.0 and AMQP 0-9-1: programs of this machine alone. Without any
# [[user]] they may do everything.
[[listen]]
host = "127.0.0.1"
port = 5672
"""

LISTEN = """
# Where clients and other containers connect, by AMQP 1.0 and AMQP 0-9-1{how}.
[[listen]]
host = {host}
port = {port}
"""

ADVERTISED = """\
# How it is reached from elsewhere, for clients that another container sends here.
advertise = {place}
"""

CLEAR = """\
# Passwords and messages cross the network as they are: `cogwork init --tls` encrypts them.
"""

TLS = """\
transport = "amqps"
# A client that shows a certificate of this authority is the user of its common name (SASL
# EXTERNAL); others log in by their passwords.
[listen.tls]
certificate = {certificate}
client_ca = "tls/ca.pem"
"""

ADMIN_USER = """
# Manages the containers. Its password is in {file}, which no container needs:
# keep it elsewhere. `cogwork passwd {name}` makes another one.
[[user]]
name = {name_text}
{login}
permissions = [
  {{ address = "#", rights = ["send", "receive", "manage"], vhost = "*" }},
  {{ address = "$management", rights = ["send", "manage"], vhost = "*" }},
]

# An application: it sends orders and takes them from a queue, and may do nothing else.
#[[user]]
#name = "shop"
#password_hash = "{example_hash}"
#permissions = [
#  {{ address = "queue/orders", rights = ["send", "receive"] }},
#]
"""

EXAMPLES = """
# A queue that is there from the start. What was delivered five times without being accepted goes to
# the queue for dead letters. Other queues are made when they are used.
#[[queue]]
#address = "queue/orders"
#maximum_delivery_count = 5
#dead_letter = "queue/dead"

# A stream, whose records are kept for a week and can be read again.
#[[stream]]
#address = "stream/events"
#retention_s = 604_800

# Heartbeats and counts, appended to the stream $telemetry.
#[telemetry]
"""

CLUSTER = """
# Who votes on what all containers have: the same list in each of them, an odd number. Queues and
# streams that are replicated outlive the loss of {lost}.
[cluster]
primaries = {primaries}
# Containers that name another cluster are not linked.
#name = "production"
"""

CERTIFIED_CONTAINER = """
# The container {id}, known by its certificate.
[[user]]
name = {id_text}
mesh = true
containers = [{id_text}]
"""

CERTIFIED_LINK = """
[[link]]
url = {url}
certificate = {certificate}
ca = "tls/ca.pem"
"""

MESH_USER = """
# What the containers log in as at each other, with the password in mesh.password.
[[user]]
name = "mesh"
{login}
mesh = true
"""

LINK = """
[[link]]
url = {url}
password_file = "mesh.password"
"""

EXAMPLE_HASH = (
    "scrypt$16384$8$5$MDEyMzQ1Njc4OWFiY2RlZg==$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)
"""No password is known for it."""


def single_text(machine: Machine, admin: Login | None) -> str:
    """Write the configuration of a machine that is alone.

    Args:
        machine: The one.
        admin: Who logs in by TLS; None listens for programs of this machine alone.
    """
    return "".join(_single(machine, admin))


def _single(machine: Machine, admin: Login | None) -> Iterator[str]:
    yield HEAD.format(id=machine.id, id_text=_text(machine.id), machines="1")
    if admin is None:
        yield LOOPBACK
    else:
        yield from _listener(machine, tls=True)
        yield _admin(admin)
    yield EXAMPLES


def mesh_text(
    machine: Machine, machines: Sequence[Machine], admin: Login, mesh: Login | None
) -> str:
    """Write the configuration of one of several machines.

    Args:
        machine: The one.
        machines: All of them.
        admin: Who manages them.
        mesh: What they log in as at each other; None has them show certificates.
    """
    return "".join(_one_of_several(machine, machines, admin, mesh))


def _one_of_several(
    machine: Machine, machines: Sequence[Machine], admin: Login, mesh: Login | None
) -> Iterator[str]:
    others = [each for each in machines if each is not machine]
    yield HEAD.format(id=machine.id, id_text=_text(machine.id), machines=len(machines))
    yield from _listener(machine, tls=mesh is None)
    primaries = primaries_of(machines)
    minority = (len(primaries) - 1) // 2
    lost = ("no machine", "one machine", "two machines")[minority]
    yield CLUSTER.format(primaries=json.dumps(primaries), lost=lost)
    yield _admin(admin)
    if mesh is not None:
        yield MESH_USER.format(login=mesh.lines)
    for each in others if mesh is None else ():
        yield CERTIFIED_CONTAINER.format(id=each.id, id_text=_text(each.id))
    if others:
        yield "\n# The other machines. Each dials each: the first that is up finds the next.\n"
    for each in others:
        if mesh is None:
            url, own = _text(f"amqps://{each.place}"), _certificate(machine)
            yield CERTIFIED_LINK.format(url=url, certificate=own).lstrip("\n")
        else:
            yield LINK.format(url=_text(f"amqp://{MESH}@{each.place}")).lstrip("\n")
    yield EXAMPLES


def _listener(machine: Machine, *, tls: bool) -> Iterator[str]:
    how = ", encrypted" if tls else ""
    yield LISTEN.format(host=_text(machine.bound), port=machine.port, how=how)
    if machine.bound != machine.host:
        yield ADVERTISED.format(place=_text(machine.place))
    yield TLS.format(certificate=_certificate(machine)) if tls else CLEAR


def _certificate(machine: Machine) -> str:
    return _text(f"tls/{machine.id}.pem")


def _admin(login: Login) -> str:
    return ADMIN_USER.format(
        name=ADMIN,
        name_text=_text(ADMIN),
        file=f"{ADMIN}.password",
        login=login.lines,
        example_hash=EXAMPLE_HASH,
    )


def _text(text: str) -> str:
    """Write a string of TOML: names and places hold nothing that JSON writes otherwise."""
    return json.dumps(text)
