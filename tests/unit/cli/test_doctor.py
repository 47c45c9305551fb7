"""The checks of `cogwork doctor`, by what containers may say and configurations may hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from certificates import DAY, Authority
from cryptography import x509

from cogwork import __version__
from cogwork.cli.doctor.configurations import check_configuration
from cogwork.cli.doctor.containers import (
    Examined,
    check_container,
    check_links,
    check_members,
    check_stores,
)
from cogwork.cli.doctor.disks import check_disk, room
from cogwork.cli.doctor.finding import Finding, Status, ok, worst
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.main import run
from cogwork.log.wal import LEAST_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

GIB = 1 << 30

CLUSTER = {"problem": "", "is_current": True, "declarations": 3, "level": 5, "supports": {"a": 5}}

WELL: dict[str, Any] = {
    "name": "a",
    "version": __version__,
    "since": "2026-11-30T00:00:00.000+00:00",
    "is_draining": False,
    "memory": {"limit_bytes": GIB, "are_publishers_blocked": False},
    "resident_bytes": 1 << 20,
    "descriptors": {"limit": 65_536, "reserved": 64, "refused": 0},
    "totals": {"connections": 10},
    "certificate_days_left": 100.0,
    "disk": {"free_bytes": 50 * GIB, "total_bytes": 100 * GIB},
    "cluster": CLUSTER,
    "durable_in_memory": 0,
}

MEMBER: dict[str, Any] = {"id": "a", "role": "primary", "spid": "1-a"}


def bad(findings: Iterable[Finding]) -> list[tuple[str, Status]]:
    """List what is not well; each says what it means, and what to do."""
    found = [each for each in findings if each.status != Status.OK]
    assert all(each.meaning and each.advice for each in found)
    return [(each.check, each.status) for each in found]


def test_a_container_that_is_well() -> None:
    findings = list(check_container(Examined(WELL)))
    assert bad(findings) == []
    assert len(findings) == 9
    assert worst(findings) == Status.OK


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"version": "0.0.1"}, [("version", Status.WARNING)]),
        ({"is_draining": True}, [("readiness", Status.WARNING)]),
        (
            {"memory": {"limit_bytes": GIB, "are_publishers_blocked": True}},
            [("memory", Status.FAIL)],
        ),
        ({"memory": {"limit_bytes": None, "are_publishers_blocked": False}}, []),
        (
            {"descriptors": {"limit": 1024, "reserved": 64, "refused": 0}},
            [("descriptors", Status.WARNING)],
        ),
        (
            {"descriptors": {"limit": 65_536, "reserved": 64, "refused": 1}},
            [("descriptors", Status.FAIL)],
        ),
        ({"totals": {"connections": 60_000}}, [("descriptors", Status.WARNING)]),
        ({"certificate_days_left": None}, []),
        ({"certificate_days_left": 14}, []),
        ({"certificate_days_left": 13.9}, [("certificates", Status.WARNING)]),
        ({"certificate_days_left": -0.1}, [("certificates", Status.FAIL)]),
        ({"disk": None}, [("disk", Status.WARNING)]),
        (
            {"disk": {"free_bytes": LEAST_BYTES - 1, "total_bytes": 50 * GIB}},
            [("disk", Status.FAIL)],
        ),
        ({"disk": {"free_bytes": 0, "total_bytes": 0}}, [("disk", Status.FAIL)]),
        ({"cluster": None}, []),
        ({"cluster": CLUSTER | {"problem": "no root"}}, [("declarations", Status.FAIL)]),
        ({"cluster": CLUSTER | {"is_current": False}}, [("declarations", Status.WARNING)]),
        (
            {"cluster": CLUSTER | {"supports": {"a": 6, "b": 5}}},
            [("feature level", Status.WARNING)],
        ),
        (
            {"cluster": CLUSTER | {"supports": {"a": 6, "b": 6}}},
            [("feature level", Status.WARNING)],
        ),
        ({"cluster": CLUSTER | {"supports": {}}}, []),
    ],
)
def test_what_is_not_well(changes: dict[str, Any], expected: list[tuple[str, Status]]) -> None:
    assert bad(check_container(Examined(WELL | changes))) == expected


def test_who_keeps_the_feature_level_down_is_named() -> None:
    cluster = CLUSTER | {"supports": {"a": 6, "late": 5}}
    findings = check_container(Examined(WELL | {"cluster": cluster}))
    assert [each.advice for each in findings if "late" in each.advice]


@pytest.mark.parametrize(
    ("offset_s", "status"),
    [(0.9, "OK"), (1.1, "WARNING"), (-1.1, "WARNING"), (31.0, "FAIL"), (-86_400.0, "FAIL")],
)
def test_clocks(offset_s: float, status: str) -> None:
    findings = check_container(Examined(WELL, offset_s))
    (clock,) = (each for each in findings if each.check == "clock")
    assert clock.status == status
    assert ("ahead" in clock.found) == (offset_s > 1)


def test_warnings_of_a_cluster_are_failures_without_a_majority() -> None:
    three = [MEMBER, MEMBER | {"id": "b"}, MEMBER | {"id": "c", "spid": None}]
    told = {
        "name": None,
        "uuid": "u",
        "root": "a",
        "members": three,
        "warnings": ["no answer from c"],
    }
    assert bad(check_members(Examined(WELL, members=told))) == [("cluster", Status.WARNING)]
    told["members"] = [MEMBER, *[MEMBER | {"id": name, "spid": None} for name in "bc"]]
    assert bad(check_members(Examined(WELL, members=told))) == [("cluster", Status.FAIL)]
    fault = "the declarations of a, b differ: this is a fault of Cogwork, please report it"
    told |= {"members": three, "warnings": [fault]}
    assert bad(check_members(Examined(WELL, members=told))) == [("cluster", Status.FAIL)]
    told["warnings"] = []
    assert bad(check_members(Examined(WELL, members=told))) == []
    assert list(check_members(Examined(WELL))) == []


def test_links_that_are_not_up_say_why() -> None:
    up = {"url": "amqp://b", "state": "up", "error": None}
    down = {"url": "amqp://c", "state": "refused", "error": "no permission"}
    findings = list(check_links(Examined(WELL, links=[up, down])))
    assert bad(findings) == [("links", Status.FAIL)]
    assert "no permission" in findings[0].found
    assert bad(check_links(Examined(WELL, links=[up]))) == []
    assert list(check_links(Examined(WELL))) == []


def test_stores_with_problems_are_named_and_many_are_counted() -> None:
    queues = [{"address": f"queue/{at}", "problem": "gone"} for at in range(10)]
    findings = list(check_stores(Examined(WELL, queues=queues)))
    assert bad(findings) == [("queues", Status.FAIL)] * 4
    assert findings[3].found == "7 more with problems"
    lost = check_stores(Examined(WELL | {"durable_in_memory": 5}))
    assert bad(lost) == [("durability", Status.WARNING)]


@pytest.mark.parametrize(
    ("free_bytes", "status"),
    [(10 * GIB, "OK"), (4 * GIB, "WARNING"), (GIB - 1, "WARNING"), (LEAST_BYTES - 1, "FAIL")],
)
def test_room_on_a_disk_of_100_gib(free_bytes: int, status: str) -> None:
    assert room("a", free_bytes, 100 * GIB).status == status


def test_a_disk_is_measured_and_left_as_it_was(tmp_path: Path) -> None:
    findings = list(check_disk(tmp_path / "data" / "below"))
    assert [each.check for each in findings] == ["disk", "file system", "fsync"]
    assert list(tmp_path.iterdir()) == []


def test_a_disk_in_memory_is_no_disk() -> None:
    findings = list(check_disk(Path("/dev/shm")))
    assert ("file system", Status.WARNING) in bad(findings)


def test_where_nobody_may_write(tmp_path: Path) -> None:
    assert bad(check_disk(Path("/proc/data"))) == [("disk", Status.FAIL)]


def checked(folder: Path, text: str) -> list[tuple[str, Status]]:
    file = folder / "cogwork.toml"
    file.write_text(text)
    file.chmod(0o600)
    return bad(check_configuration(file))


def test_a_configuration_that_cannot_be_used(tmp_path: Path) -> None:
    assert checked(tmp_path, "listne = 3") == [("configuration", Status.FAIL)]
    assert bad(check_configuration(tmp_path / "missing")) == [("configuration", Status.FAIL)]
    assert checked(tmp_path, '[[queue]]\naddress = "queue/a"\ndurability = "disk"') == [
        ("configuration", Status.FAIL)
    ]


def test_a_configuration_that_is_well(tmp_path: Path) -> None:
    assert run(["init", str(tmp_path)]) == ExitCode.OK
    assert bad(check_configuration(tmp_path / "cogwork.toml")) == []


@pytest.mark.parametrize(
    ("primaries", "is_well"), [("a", False), ("a,b", False), ("a,b,c", True), ("a,b,c,d", False)]
)
def test_primaries(tmp_path: Path, primaries: str, *, is_well: bool) -> None:
    names = json.dumps(primaries.split(","))
    text = f'id = "a"\ndata_dir = "data"\n[cluster]\nprimaries = {names}'
    assert checked(tmp_path, text) == ([] if is_well else [("primaries", Status.WARNING)])


def test_passwords_in_clear_are_a_warning(tmp_path: Path) -> None:
    text = 'data_dir = "data"\n[[listen]]\nhost = "0.0.0.0"\nport = 5672\n[[user]]\nname = "a"\n'
    text += 'password_hash = "scrypt$16384$8$5$MDEyMzQ1Njc4OWFiY2RlZg==$MDEyMzQ1Njc4OWFiY2RlZg=="'
    assert checked(tmp_path, text) == [("configuration", Status.WARNING)]


TLS = """
data_dir = "data"
[[listen]]
port = 5671
transport = "amqps"
tls = {{ certificate = "{certificate}" }}
"""


def test_files_of_tls_that_cannot_be_used(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.issue("own", "localhost")
    assert checked(tmp_path, TLS.format(certificate="own.pem")) == []
    assert checked(tmp_path, TLS.format(certificate="ca.pem")) == [("certificates", Status.FAIL)]
    assert checked(tmp_path, TLS.format(certificate="none.pem")) == [("certificates", Status.FAIL)]


@pytest.mark.parametrize(("days", "status"), [(5, Status.WARNING), (-1, Status.FAIL)])
def test_a_certificate_that_ends(tmp_path: Path, days: int, status: Status) -> None:
    authority = Authority(tmp_path)
    path = authority.issue("own", "localhost")
    until = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    now_s = (until - days * DAY).timestamp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cogwork.cli.doctor.configurations.time.time", lambda: now_s)
        assert checked(tmp_path, TLS.format(certificate="own.pem")) == [("certificates", status)]


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text("")
    assert run(["doctor", "--config", str(file)]) == ExitCode.OK
    assert "1 WARNING, 0 FAIL" in capsys.readouterr().out
    assert run(["doctor", "--config", str(file), "--strict"]) == ExitCode.ERROR
    assert run(["doctor", "--config", str(tmp_path / "none"), "--json"]) == ExitCode.ERROR
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["failed"] == 1
    assert run(["doctor"]) == ExitCode.USAGE


def test_the_worst_of_nothing_is_well() -> None:
    assert worst([]) == Status.OK
    assert worst([ok("a", "b", "c")]) == Status.OK
