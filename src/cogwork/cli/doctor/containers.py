"""Checks of one running container, by what it says of itself: no network, no clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cogwork import __version__
from cogwork.cli.doctor.disks import room
from cogwork.cli.doctor.finding import failed, ok, warned
from cogwork.cli.terminal.tables import in_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cogwork.cli.doctor.finding import Finding

__all__ = ("Examined", "check_container", "check_links", "check_members", "check_stores")

Row = dict[str, Any]

CERTIFICATE_WARN_DAYS = 14
DESCRIPTORS_FEW = 1024
"""What systems give processes that ask for no more: less than the clients of a busy container."""

USED_SHARE_WARN = 0.8
CLOCK_WARN_S, CLOCK_FAIL_S = 1.0, 30.0
NAMED_MAX = 3


@dataclass(frozen=True)
class Examined:
    """What was asked of a container.

    Attributes:
        container: Its attributes.
        clock_offset_s: How far its clock is ahead of this machine's, as far as that can be known.
        links: Those to other containers.
        queues: Its queues.
        streams: Its streams.
        members: The status of its cluster; None without one.
    """

    container: Row
    clock_offset_s: float = 0.0
    links: Sequence[Row] = field(default_factory=list)
    queues: Sequence[Row] = field(default_factory=list)
    streams: Sequence[Row] = field(default_factory=list)
    members: Row | None = None

    @property
    def name(self) -> str:
        """The container's id."""
        return str(self.container["name"])


def check_container(examined: Examined) -> Iterator[Finding]:
    """Check what a container says of itself."""
    yield _version(examined)
    yield _readiness(examined)
    yield _memory(examined)
    yield _descriptors(examined)
    yield _clock(examined)
    yield _certificates(examined)
    yield _disk(examined)
    yield _cluster(examined)
    level = _level(examined)
    if level is not None:
        yield level


def _version(examined: Examined) -> Finding:
    version = examined.container["version"]
    if version == __version__:
        return ok("version", examined.name, f"{version}, as this command")
    return warned(
        "version",
        examined.name,
        f"{version}, and this command is {__version__}",
        "the command may not know what the container does, and some checks may be left out",
        "use the command of the container's own version",
    )


def _readiness(examined: Examined) -> Finding:
    if examined.container["is_draining"]:
        return warned(
            "readiness",
            examined.name,
            "it is stopping",
            "it takes no new clients",
            "wait until it has stopped, and start it again if that was not meant",
        )
    since = str(examined.container["since"])
    return ok("readiness", examined.name, f"takes clients, since {since}")


def _memory(examined: Examined) -> Finding:
    memory = examined.container["memory"]
    used = f"{in_bytes(examined.container['resident_bytes'])} in use"
    limit_bytes = memory["limit_bytes"]
    told = used if limit_bytes is None else f"{used}, publishers wait at {in_bytes(limit_bytes)}"
    if memory["are_publishers_blocked"]:
        return failed(
            "memory",
            examined.name,
            told,
            "publishers wait until memory is free: consumers are too slow, or a client is",
            "look for long queues and unsettled deliveries with `cogwork status`; give the machine "
            "more memory, or set limits.memory_watermark",
        )
    return ok("memory", examined.name, told)


def _descriptors(examined: Examined) -> Finding:
    found = examined.container["descriptors"]
    connections = examined.container["totals"]["connections"]
    limit, refused = found["limit"], found["refused"]
    told = f"{connections:,} connections, {limit:,} descriptors"
    advice = "raise the limit: LimitNOFILE of the service's unit, or `ulimit -n`"
    if refused:
        return failed(
            "descriptors",
            examined.name,
            f"{told}; {refused:,} connections were refused for want of descriptors",
            "clients cannot connect",
            advice,
        )
    if connections > USED_SHARE_WARN * (limit - found["reserved"]):
        return warned(
            "descriptors", examined.name, told, "soon no client will be able to connect", advice
        )
    if limit <= DESCRIPTORS_FEW:
        return warned(
            "descriptors",
            examined.name,
            told,
            "each connection and each open file takes one",
            advice,
        )
    return ok("descriptors", examined.name, told)


def _clock(examined: Examined) -> Finding:
    offset_s = examined.clock_offset_s
    side = "ahead of" if offset_s > 0 else "behind"
    told = f"{abs(offset_s):.1f} s {side} this machine"
    if abs(offset_s) <= CLOCK_WARN_S:
        return ok("clock", examined.name, "that of this machine, to a second")
    meaning = "times to live, retention by age, tokens and certificates are judged by other clocks"
    advice = "have NTP set both clocks, as chrony or systemd-timesyncd does"
    judge = failed if abs(offset_s) > CLOCK_FAIL_S else warned
    return judge("clock", examined.name, told, meaning, advice)


def _certificates(examined: Examined) -> Finding:
    days = examined.container["certificate_days_left"]
    if days is None:
        return ok("certificates", examined.name, "none are used")
    if days >= CERTIFICATE_WARN_DAYS:
        return ok("certificates", examined.name, f"the first expires in {int(days)} days")
    advice = "put a new one in the place of the old file, and reload the container (SIGHUP)"
    meaning = "with an expired certificate no client and no container connects by TLS"
    if days < 0:
        return failed("certificates", examined.name, "one has expired", meaning, advice)
    return warned(
        "certificates", examined.name, f"the first expires in {days:.1f} days", meaning, advice
    )


def _disk(examined: Examined) -> Finding:
    disk = examined.container.get("disk")
    if disk is None:
        return warned(
            "disk",
            examined.name,
            "no data directory",
            "nothing outlives the process: queues, streams and declarations are in memory alone",
            "set data_dir, if they are to be kept",
        )
    return room(examined.name, disk["free_bytes"], disk["total_bytes"])


def _cluster(examined: Examined) -> Finding:
    cluster = examined.container["cluster"]
    if cluster is None:
        return ok("declarations", examined.name, "no cluster")
    if cluster["problem"]:
        return failed(
            "declarations",
            examined.name,
            cluster["problem"],
            "it does not follow what the cluster declares",
            "see `cogwork cluster status`, and the container's log",
        )
    if not cluster["is_current"]:
        return warned(
            "declarations",
            examined.name,
            "not all have been read yet",
            "exchanges, queues and users of the cluster may be missing here for a moment",
            "wait, and look again",
        )
    count = cluster["declarations"]
    return ok("declarations", examined.name, f"all {count:,} have been read")


def _level(examined: Examined) -> Finding | None:
    """Compare the cluster's feature level with what its members know."""
    cluster = examined.container["cluster"]
    if cluster is None or not cluster["supports"]:
        return None
    level, highest = cluster["level"], max(cluster["supports"].values())
    if level >= highest:
        return ok("feature level", examined.name, f"{level}, the highest that the members know")
    behind = sorted(name for name, known in cluster["supports"].items() if known < highest)
    return warned(
        "feature level",
        examined.name,
        f"{level}, and there are members that know {highest}",
        "what came with the higher level cannot be declared yet",
        f"update {_named(behind)}, or `cogwork cluster forget` those that are gone for good"
        if behind
        else "wait some seconds: it rises by itself",
    )


def check_members(examined: Examined) -> Iterator[Finding]:
    """Check how the members of a cluster are, by what a container finds."""
    members = examined.members
    if members is None:
        return
    name = members.get("name") or members["uuid"] or examined.name
    subject = f"cluster {name}"
    if not members["warnings"]:
        count = len(members["members"])
        yield ok("cluster", subject, f"{count} members answer, root {members['root']}")
    primaries = [each for each in members["members"] if each["role"] == "primary"]
    has_majority = sum(each["spid"] is not None for each in primaries) * 2 > len(primaries)
    for warning in members["warnings"]:
        judge = warned if has_majority and "please report" not in warning else failed
        yield judge(
            "cluster",
            subject,
            warning,
            "it survives fewer losses than it could, or nothing can be declared in it",
            "see `cogwork cluster status`; start the members that are missing, and change the "
            "primaries by `cogwork cluster promote` and `cogwork cluster demote`",
        )


def check_links(examined: Examined) -> Iterator[Finding]:
    """Check the links to other containers."""
    down = [each for each in examined.links if each["state"] != "up"]
    if not down and examined.links:
        yield ok("links", examined.name, f"all {len(examined.links)} are up")
    for each in down:
        error = each["error"] or "no error yet"
        yield failed(
            "links",
            examined.name,
            f"{each['url']} is {each['state']}: {error}",
            "messages take other ways, or none",
            "see that the other container runs, can be reached from here and lets this one link",
        )


def check_stores(examined: Examined) -> Iterator[Finding]:
    """Check queues and streams."""
    for kind, rows in (("queues", examined.queues), ("streams", examined.streams)):
        broken = [each for each in rows if each.get("problem")]
        if not broken:
            yield ok(kind, examined.name, f"none of {len(rows):,} has a problem")
        for each in broken[:NAMED_MAX]:
            yield failed(
                kind,
                examined.name,
                f"{each['address']}: {each['problem']}",
                "it takes no messages, or not as it was declared",
                f"see `cogwork {kind[:-1]} list` and the container's log",
            )
        if broken[NAMED_MAX:]:
            yield failed(
                kind,
                examined.name,
                f"{len(broken) - NAMED_MAX:,} more with problems",
                "they take no messages, or not as they were declared",
                f"see `cogwork {kind[:-1]} list --json`",
            )
    kept = examined.container["durable_in_memory"]
    if kept:
        yield warned(
            "durability",
            examined.name,
            f"{kept:,} durable messages were kept in memory",
            "their publishers asked for the disk, and a restart loses them",
            "set data_dir, or declare their queues with durability auto, disk or replicated",
        )


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMED_MAX])
    return f"{shown} and {len(names) - NAMED_MAX} more" if names[NAMED_MAX:] else shown
