"""Where links lead, by their URLs alone."""

from __future__ import annotations

import pytest

from cogwork.container.mesh.urls import LinkUrl


@pytest.mark.parametrize(
    ("url", "host", "port", "is_same"),
    [
        ("127.0.0.1:1", "127.0.0.1", 1, True),
        ("127.0.0.1:2", "127.0.0.1", 1, False),
        ("localhost:1", "127.0.0.1", 1, True),
        ("localhost:1", "::1", 1, True),
        ("[::1]:1", "localhost", 1, True),
        ("127.0.0.2:1", "127.0.0.1", 1, False),
        ("127.0.0.2:1", "0.0.0.0", 1, True),
        ("amqps://ann:secret@localhost:1", "0.0.0.0", 1, True),
        ("[::1]:1", "0.0.0.0", 1, False),
        ("[::1]:1", "::", 1, True),
        ("localhost:1", "::", 1, True),
        ("127.0.0.1:1", "::", 1, False),
        ("other:1", "0.0.0.0", 1, False),
        ("other:1", "other", 1, True),
        ("unix:///run/a", "/run/a", 0, True),
        ("unix:///run/a", "/run/b", 0, False),
    ],
)
def test_a_url_tells_whether_it_leads_to_a_listener(
    url: str, host: str, port: int, is_same: bool
) -> None:
    assert LinkUrl.parse(url).leads_to(host, port) is is_same
