"""What is said of networks and proxies that cannot be."""

from __future__ import annotations

import pytest
from whole_configuration import error_of

from cogwork.config.reading import parse

LISTEN = "[[listen]]\nport = 1\n"
PATH = "[[listen]]\npath = '/run/x'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{LISTEN}proxy_protocol = true", "listen[0].proxy_from: found nothing, expected the net"),
        (f"{LISTEN}proxy_from = ['::1']", "cogwork.toml:3: listen[0].proxy_from: found networks,"),
        (f"{LISTEN}allow = ['::1', 'x']", 'cogwork.toml:3: listen[0].allow[1]: found "x", where'),
        (f"{LISTEN}deny = ['10.0.0.1/8']", "has host bits set, expected a network, such as"),
        (f"{LISTEN}deny = ['10.0.0.0/33']", 'listen[0].deny[0]: found "10.0.0.0/33"'),
        (f"{PATH}allow = ['::1']", "listen[0].allow: found networks at a path, expected a port"),
        (f"{PATH}proxy_protocol = true\nproxy_from = ['::1']", "found networks at a path"),
        (
            f"{LISTEN}proxy_protocol = true\nproxy_from = ['::1']\nsasl = ['ANONYMOUS']",
            'listen[0].sasl: found "ANONYMOUS" on 127.0.0.1:1, expected a loopback host',
        ),
    ],
)
def test_a_mistake_names_its_place(text: str, message: str) -> None:
    assert message in str(error_of(text))


def test_lists_are_taken() -> None:
    (listen,) = parse(f"{LISTEN}allow = ['127.0.0.0/8', '10.1.0.0/16']\ndeny = ['::']").listeners
    assert (listen.allow, listen.deny) == (["127.0.0.0/8", "10.1.0.0/16"], ["::"])
