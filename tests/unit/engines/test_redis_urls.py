"""The URLs of Redis: which are taken, and that none is told of with a password."""

from __future__ import annotations

import pytest

pytest.importorskip("redis", reason="the extra [redis] is not installed")

from cogwork.engines.redis import RedisHost
from cogwork.plugin.engine.contract import EngineContext

USER = "redis://root:s3cret@"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (USER + "127.0.0.1:99999", "127.0.0.1:99999"),
        (USER + "127.0.0.1:63x79", "127.0.0.1:63x79"),
        (USER + "127.0.0.1:0", "127.0.0.1:0"),
        (USER + "[::1:6379", "[::1:6379"),
        (USER, ""),
        ("redis://root:s3/cret@127.0.0.1:6379", "127.0.0.1:6379"),
        ("http://127.0.0.1:6379", "http://127.0.0.1:6379"),
        ("unix://", "unix://"),
        ("127.0.0.1:6379", "127.0.0.1:6379"),
    ],
)
def test_a_url_that_is_none_is_refused_without_its_password(url: str, shown: str) -> None:
    with pytest.raises(ValueError, match="url is like") as told:
        RedisHost(EngineContext({"url": url}))
    assert str(told.value) == f"url is like redis://localhost:6379/0, not {shown!r}"


@pytest.mark.parametrize(
    "url",
    ["redis://localhost", "redis:///0", "rediss://u:p@[::1]:6379/1", "unix:///run/redis.sock"],
)
def test_urls_that_the_library_knows_are_taken(url: str) -> None:
    RedisHost(EngineContext({"url": url}))


def test_a_login_beside_the_url_is_used_and_stands_in_one_place() -> None:
    host = RedisHost(EngineContext({"user": "north", "password": "p@ss"}))
    settings = host._redis.connection_pool.connection_kwargs
    assert (settings["username"], settings["password"]) == ("north", "p@ss")
    with pytest.raises(ValueError, match="stands in url, too") as failure:
        RedisHost(EngineContext({"url": "redis://:other@h", "password": "p@ss"}))
    assert "p@ss" not in str(failure.value)


def test_a_password_that_is_no_text_is_not_shown() -> None:
    with pytest.raises(ValueError, match="password is a text") as failure:
        RedisHost(EngineContext({"password": 4711}))
    assert "4711" not in str(failure.value)
