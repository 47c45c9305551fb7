"""Certificates that expire are told: when they are read, and once a day."""

from __future__ import annotations

import asyncio
import gc
import ssl
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import trustme

from cogwork.config.reading import parse
from cogwork.container.container import Container
from cogwork.container.management.rows import container_row
from cogwork.io.tls import ServerTls, TlsFiles, client_context
from cogwork.tls.expiry import DAY_S, EXPIRY, Expiry, ends_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def issue(authority: trustme.CA, folder: Path, days: float, name: str = "own.pem") -> Path:
    """Write a certificate that expires after so many days, with its key."""
    now = datetime.now(UTC)
    made = authority.issue_cert(
        "localhost", not_before=now - timedelta(days=90), not_after=now + timedelta(days=days)
    )
    made.private_key_and_cert_chain_pem.write_to_path(folder / name)
    return folder / name


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (-2.5, "has expired on "),
        (0.5, "expires today, on "),
        (1.5, "expires in 1 day, on "),
        (13.5, "expires in 13 days, on "),
        (14.5, ""),
        (20_000, ""),
    ],
)
def test_one_that_has_expired_or_soon_does_is_told_as_it_is_read(
    authority: trustme.CA, tmp_path: Path, caplog: pytest.LogCaptureFixture, days: float, text: str
) -> None:
    file = issue(authority, tmp_path, days)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = ServerTls(TlsFiles(file))
    client_context(tmp_path / "ca.pem", file)
    told = warnings(caplog)
    assert len(told) == 2 * bool(text)
    for each in told:
        assert each.startswith(f"the certificate {file} {text}")
        assert (datetime.now(UTC) + timedelta(days=days)).strftime("%Y-%m-%d") in each
    caplog.clear()
    tls.reload()
    assert len(warnings(caplog)) == bool(text)
    caplog.clear()
    issue(authority, tmp_path, 90)
    tls.reload()
    assert warnings(caplog) == []


def test_what_the_reader_finds_is_what_the_library_finds(
    authority: trustme.CA, tmp_path: Path
) -> None:
    for days in (1, 400, 9_000, 30_000):  # from 2050 on years have four digits
        end = datetime.now(UTC) + timedelta(days=days)
        file = issue(authority, tmp_path, days)
        assert ends_of(file)[0] == pytest.approx(end.timestamp(), abs=2)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(tmp_path / "ca.pem")
    (known,) = context.get_ca_certs()
    assert ends_of(tmp_path / "ca.pem") == [ssl.cert_time_to_seconds(str(known["notAfter"]))]


def test_what_is_no_certificate_is_passed_over(authority: trustme.CA, tmp_path: Path) -> None:
    file = issue(authority, tmp_path, 3)
    data = file.read_bytes()
    (tmp_path / "none.pem").write_bytes(b"")
    assert ends_of(tmp_path / "none.pem") == []
    assert ends_of(tmp_path / "gone.pem") == []
    for at in range(0, len(data), 7):
        (tmp_path / "bad.pem").write_bytes(data[:at] + b"A" + data[at + 1 :])
        ends_of(tmp_path / "bad.pem")


def test_it_is_told_again_once_a_day_for_as_long_as_it_is_used(
    authority: trustme.CA, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found, now_s = Expiry(), time.time()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.shown(context, issue(authority, tmp_path, 15.5), now_s)
    assert found.days_left(now_s) == 15
    told = []
    for hour in range(6 * 24):
        caplog.clear()
        found.remind(now_s + hour * 3600)
        told += [(hour // 24, each.rpartition(" expires ")[2][:9]) for each in warnings(caplog)]
    assert told == [(2, "in 13 day"), (3, "in 12 day"), (4, "in 11 day"), (5, "in 10 day")]
    caplog.clear()
    found.remind(now_s + 20 * DAY_S)
    assert "has expired on" in warnings(caplog)[0]
    assert (found.days_left(now_s + 20 * DAY_S) or 0) < 0
    caplog.clear()
    del context
    gc.collect()
    found.remind(now_s + 30 * DAY_S)
    assert warnings(caplog) == []
    assert found.days_left() is None


def test_of_several_authorities_the_one_that_lasts_longest_counts(
    authority: trustme.CA, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = issue(authority, tmp_path, -3).read_bytes().partition(b"-----BEGIN CERTIFICATE")
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(old[1] + old[2])
    client_context(bundle)
    assert warnings(caplog)[0].startswith(f"the authority {bundle} has expired on ")
    caplog.clear()
    bundle.write_bytes(old[1] + old[2] + authority.cert_pem.bytes())
    client_context(bundle)
    assert warnings(caplog) == []


def test_a_container_tells_of_listeners_and_links_while_it_runs(
    authority: trustme.CA,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, link = issue(authority, tmp_path, 3), issue(authority, tmp_path, 5, "link.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")

    async def until(count: int) -> None:
        async with asyncio.timeout(30):
            while len(warnings(caplog)) < count:
                await asyncio.sleep(0.05)

    gc.collect()  # contexts of other tests

    async def story() -> None:
        listening = (
            f'[[listen]]\ntransport = "amqps"\nport = 0\ntls = {{ certificate = "{own}" }}\n'
        )
        first = Container(parse(f'id = "a"\n{listening}', "test"))
        await first.start()
        await until(1)
        url = first.endpoints[0].replace("127.0.0.1", "localhost")
        dialling = (
            f'[[link]]\nurl = "{url}"\nca = "{tmp_path / "ca.pem"}"\ncertificate = "{link}"\n'
        )
        second = Container(parse(f'id = "b"\n[[listen]]\nport = 0\n{dialling}', "test"))
        await second.start()
        await until(2)
        assert container_row(second)["certificate_days_left"] == 2
        caplog.clear()
        monkeypatch.setattr(EXPIRY, "_due_s", 0.0)  # a day has passed
        await until(2)
        await second.stop(drain_timeout_s=0)
        await first.stop(drain_timeout_s=0)

    asyncio.run(story())
    told = "\n".join(warnings(caplog))
    assert f"{own} expires in 2 days" in told
    assert f"{link} expires in 4 days" in told
