"""Where a stream on NATS is, as people see it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import ParseResult, urlparse

import pytest

from cogwork.engines.nats.log import place_of


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (urlparse("nats://ann:secret@here:4222"), "here:4222"),
        (urlparse("nats://here:4222"), "here:4222"),
        (None, "nats"),
    ],
)
def test_a_server_is_a_host_and_a_port(url: ParseResult | None, place: str) -> None:
    assert place_of(cast("Any", SimpleNamespace(connected_url=url))) == place
