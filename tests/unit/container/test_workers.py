"""What a worker's configuration says, and the URLs by which workers are linked."""

from __future__ import annotations

import pytest

from cogwork.config.errors import ConfigurationError
from cogwork.config.link_urls import BadLinkUrl, LinkUrl
from cogwork.config.reading import check, parse
from cogwork.container.workers import Worker
from cogwork.io.socket_file import PATH_BYTES_MAX

WHOLE = """
id = "north"
data_dir = "/var/lib/north"
workers = 3
listen = ["127.0.0.1:0", "127.0.0.1:5672"]
link = ["south:5672"]

[mesh]
worker_cost = 7
"""


def worker(number: int) -> Worker:
    return Worker(number, 3, "/run/w", [4001, 5672])


def test_each_worker_is_a_container_of_its_own() -> None:
    whole = parse(WHOLE)
    for number in range(3):
        told = worker(number).configured(whole)
        check(told)
        assert told.id == f"north.{number}"
        assert told.data_dir == f"/var/lib/north/worker-{number}"
        assert [listen.port for listen in told.listeners] == [4001, 5672]


def test_each_is_linked_with_each_and_the_first_with_others() -> None:
    whole = parse(WHOLE)
    links = [
        [(link.url, link.cost) for link in worker(n).configured(whole).links] for n in range(3)
    ]
    zero, one, two = (f"unix://{worker(number).socket.path}" for number in range(3))
    assert links == [
        [(one, 7), (two, 7), ("south:5672", 1)],
        [(zero, 7), (two, 7)],
        [(zero, 7), (one, 7)],
    ]


def test_a_container_without_files_has_workers_without_files() -> None:
    assert worker(1).configured(parse("workers = 2")).data_dir is None


def test_a_listener_that_the_file_has_got_meanwhile_keeps_its_port() -> None:
    whole = parse("workers = 3\nlisten = [':0', ':5672', ':0']")
    assert [each.port for each in worker(0).configured(whole).listeners] == [4001, 5672, 0]


def test_an_id_leaves_room_for_the_number_of_a_worker() -> None:
    parse(f"id = '{'n' * 64}'")
    parse(f"id = '{'n' * 62}'\nworkers = 10")
    with pytest.raises(ConfigurationError, match="id: found 62 bytes, expected at most 61"):
        parse(f"id = '{'n' * 62}'\nworkers = 11")


@pytest.mark.parametrize("count", [0, 65])
def test_there_are_some_workers_but_not_hundreds(count: int) -> None:
    with pytest.raises(ConfigurationError, match=f"workers: found {count}, expected"):
        parse(f"workers = {count}")


# -- URLs


@pytest.mark.parametrize("path", ["/run/a", "/a b/@?#%41", "/" + "x" * (PATH_BYTES_MAX - 1)])
def test_a_path_stands_in_a_url_as_it_is(path: str) -> None:
    url = LinkUrl.parse(f"unix://{path}")
    assert url.is_unix
    assert url.endpoint == path
    assert str(url) == f"unix://{path}"
    assert LinkUrl.parse(str(url)) == url


@pytest.mark.parametrize(
    "text", ["unix://", "unix://run/a", "unix://host:1", "unix:///a\0b", "unix:///" + "ä" * 60]
)
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(BadLinkUrl, match="the path of a socket from / on, of at most 107 bytes"):
        LinkUrl.parse(text)


def test_other_urls_are_no_paths() -> None:
    assert not LinkUrl.parse("amqp://host").is_unix
    with pytest.raises(
        ConfigurationError, match=r'found a file for "unix:///a", expected an amqps'
    ):
        parse("[[link]]\nurl = 'unix:///a'\nca = 'ca.pem'")
