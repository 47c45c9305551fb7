"""Where a configuration has the container dial, and a list of the places that may be."""

from __future__ import annotations

import pytest

from cogwork.config.errors import ConfigurationError
from cogwork.config.reading import parse

DIAL = '[dial]\nallow = ["10.0.0.0/8", "*.example.org:5671", "unix:///run/*"]\n'
OAUTH = '[oauth]\nissuer = "i"\naudience = ["a"]\n'


@pytest.mark.parametrize(
    "text",
    [
        '[[link]]\nurl = "10.1.1.1:1"\n',
        '[[link]]\nurl = "amqps://a.example.org"\n',
        '[[link]]\nurl = "unix:///run/x"\n',
        '[[engine]]\nname = "etcd"\noptions = { url = "http://u:p@10.1.1.1,http://10.2.2.2:1" }\n',
        '[[engine]]\nname = "kafka"\noptions = { bootstrap = "a.example.org:5671" }\n',
        '[[engine]]\nname = "redis"\noptions = { prefix = "x" }\n',
        f'{OAUTH}jwks = "https://a.example.org:5671/jwks"\n',
        f'{OAUTH}jwks = "keys.json"\n',
    ],
)
def test_what_is_listed_may_be_dialled(text: str) -> None:
    assert parse(text + DIAL).dial is not None


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[[link]]\nurl = "11.1.1.1:1"\n', r'link\[0\].url: found "amqp://11.1.1.1:1"'),
        ('[[link]]\nurl = "amqps://u:secret@a.example.org:1"\n', r"link\[0\].url"),
        ('[[link]]\nurl = "unix:///tmp/x"\n', r"link\[0\].url"),
        (
            '[[engine]]\nname = "etcd"\noptions = { url = "http://10.1.1.1,http://u:secret@h" }\n',
            r"engine\[0\].options.url: found another place",
        ),
        (
            '[[engine]]\nname = "kafka"\noptions = { bootstrap = "h:1" }\n',
            r"engine\[0\].options.bootstrap",
        ),
        (
            '[[engine]]\nname = "kafka"\n'
            'options = { bootstrap = "10.1.1.1:1", client = { "bootstrap.servers" = "h:1" } }\n',
            r"engine\[0\].options.client",
        ),
        ('[[engine]]\nname = "nats"\noptions = { url = "nats://secret:x,y" }\n', "options.url"),
        (f'{OAUTH}jwks = "https://login.example.org/jwks"\n', "oauth.jwks"),
    ],
)
def test_what_is_not_listed_is_a_mistake_that_shows_no_secret(text: str, key: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{key}.*dial.allow lists") as caught:
        parse(text + DIAL)
    assert "secret" not in str(caught.value)
    assert parse(text)


def test_what_is_no_place_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r'dial.allow\[1\]: found "http://x", where it is'):
        parse('[dial]\nallow = ["h", "http://x"]\n')
