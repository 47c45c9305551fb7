"""Whom a client tries next, and whom it remembers."""

from __future__ import annotations

from cogwork.client.connection.redirection import Redirected, Redirection
from cogwork.client.connection.search import REDIRECTS_MAX, Search
from cogwork.client.connection.url import Endpoint, parse_url
from cogwork.client.errors import ConnectError


def at(name: str) -> Endpoint:
    return parse_url(f"amqp://{name}")


def redirected(origin: str, *names: str) -> Redirected:
    return Redirected(at(origin), Redirection([at(name) for name in names]))


def tried(search: Search, redirects: dict[str, Redirected]) -> list[str]:
    """List whom a search tries where some redirect and nobody answers."""
    names = []
    for endpoint in search:
        names.append(endpoint.host)
        if endpoint.host in redirects:
            search.follow(endpoint, redirects[endpoint.host])
        else:
            search.fail(endpoint, ConnectError(endpoint.host))
    return names


def test_each_is_tried_once() -> None:
    search = Search([at("b")], [at("a"), at("b"), at("c")])
    assert tried(search, {}) == ["b", "a", "c"]
    assert [str(failure) for failure in search.failures] == ["b", "a", "c"]


def test_a_redirect_goes_before_the_list_which_begins_anew() -> None:
    search = Search([], [at("a"), at("b")])
    found = tried(search, {"b": redirected("b", "x", "y", "a")})
    assert found[:5] == ["a", "b", "x", "y", "b"]  # a has failed, and is not asked again


def test_one_that_has_sent_us_away_is_asked_to_keep_us() -> None:
    search = Search([], [at("a"), at("b")])
    assert not search.insists(at("a"))
    search.follow(at("a"), redirected("a", "b"))
    assert search.insists(at("a"))
    assert not search.insists(at("b"))


def test_of_redirects_in_a_row_there_are_only_so_many() -> None:
    search = Search([], [at("a"), at("c")])
    found = tried(search, {"a": redirected("a", "b"), "b": redirected("b", "a")})
    assert search.redirects == REDIRECTS_MAX
    assert found[: REDIRECTS_MAX + 1] == ["a", "b"] * (REDIRECTS_MAX // 2) + ["a"]
    assert found[REDIRECTS_MAX + 1 :] == ["c"]
    (told,) = (str(each) for each in search.failures if "in a row" in str(each))
    assert told == (
        f"amqp://a:5672: redirects to amqp://b:5672, after {REDIRECTS_MAX} redirects in a row"
    )


def test_who_answered_is_tried_first_next_time_then_those_that_were_named() -> None:
    search = Search([], [at("a")])
    search.follow(at("a"), redirected("a", "b", "c", "d"))
    search.fail(at("b"), ConnectError("b"))
    assert [each.host for each in search.nearest(at("c"))] == ["c", "d"]
