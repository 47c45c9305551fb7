"""Logins by a token that a file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import oslo_messaging
import pytest
from helpers import client, rpc
from issuers import AUDIENCE, ISSUER, Issuer

from cogwork.testing import TestContainer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIGURATION = """
[oauth]
issuer = "{issuer}"
audience = ["{audience}"]
jwks = "{jwks}"
leeway_s = 0

[[user]]
name = "nova"
tokens = true
permissions = [{{ address = "openstack.org/#", rights = ["send"] }}]
"""

NOBODY = "nobody is there"
"""What a cast to nobody ends with, once it is connected."""


class Stage(NamedTuple):
    """A container that takes tokens, who issues them, and a file for one."""

    host: str
    issuer: Issuer
    file: Path


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    issuer, file = Issuer(), tmp_path / "token"
    (tmp_path / "jwks.json").write_bytes(issuer.jwks())
    text = CONFIGURATION.format(issuer=ISSUER, audience=AUDIENCE, jwks=tmp_path / "jwks.json")
    container = TestContainer(text, 0, "by-token").start()
    yield Stage(container.url.removeprefix("amqp://"), issuer, file)
    container.stop()


def cast(url: str, **options: object) -> str:
    """Cast to nobody; return what the error says."""
    with (
        rpc(url, default_send_timeout=2, **options) as transport,
        pytest.raises(oslo_messaging.MessageDeliveryFailure) as caught,
    ):
        client(transport, "nobody", retry=0).cast({}, "any")
    return str(caught.value)


def test_a_token_lets_it_in_and_is_read_for_each_connection(stage: Stage) -> None:
    url, option = f"amqp://{stage.host}/", {"sasl_token_file": str(stage.file)}
    stage.file.write_text(f"{stage.issuer.token('nova')}\n")
    assert NOBODY in cast(url, **option)
    assert NOBODY in cast(f"{url}?sasl_token_file={stage.file}")
    assert NOBODY in cast(f"amqp://nova@{stage.host}/", **option)
    assert NOBODY in cast(url, **option, sasl_mechanisms="PLAIN OAUTHBEARER")
    assert "not connected" in cast(f"amqp://other@{stage.host}/", **option)
    with rpc(url, default_send_timeout=2, **option) as transport:
        stage.file.write_text(stage.issuer.token("nova", exp=1))
        with pytest.raises(oslo_messaging.MessageDeliveryFailure, match="not connected"):
            client(transport, "nobody", retry=0).cast({}, "any")
        stage.file.write_text(stage.issuer.token("nova"))
        with pytest.raises(oslo_messaging.MessageDeliveryFailure, match=NOBODY):
            client(transport, "nobody", retry=0).cast({}, "any")


@pytest.mark.parametrize(
    ("held", "url", "options", "says"),
    [
        ("", "amqp://{}/", {}, "found nothing in"),
        ("no token", "amqp://{}/", {}, "holds no token"),
        (None, "amqp://{}/", {}, "No such file"),
        ("t", "amqp://nova:pass@{}/", {}, "and a password in the transport_url"),
        ("t", "amqp://{}/", {"sasl_mechanisms": "PLAIN"}, "with sasl_token_file it needs OAUTH"),
    ],
)
def test_what_cannot_be_is_one_clear_error(
    stage: Stage, held: str | None, url: str, options: dict[str, object], says: str
) -> None:
    if held is not None:
        stage.file.write_text(held)
    with pytest.raises(oslo_messaging.exceptions.ConfigurationError, match=says):
        cast(url.format(stage.host), sasl_token_file=str(stage.file), **options)
