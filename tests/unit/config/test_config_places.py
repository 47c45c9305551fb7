"""Where the configuration lets queues and streams be, and who it lets hold them."""

from __future__ import annotations

import pytest
from whole_configuration import error_of

from cogwork.config.errors import ConfigurationError, OptionError
from cogwork.config.reading import parse, with_options

STREAM = '[[stream]]\naddress = "stream/a"\n'
QUEUE = '[[queue]]\naddress = "queue/a"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'id = "c"\n[cluster]\nprimaries = ["a", "b"]\nrole = "primary"',
            "cogwork.toml:4: cluster.role: found 'primary', and 'c' is not among the primaries, "
            "expected a role that agrees with primaries",
        ),
        (
            'id = "a"\n[cluster]\nprimaries = ["a", "b"]\nrole = "secondary"',
            "cogwork.toml:4: cluster.role: found 'secondary', and 'a' is among the primaries, "
            "expected a role that agrees with primaries",
        ),
        (
            '[cluster]\nrole = "secondary"',
            "cogwork.toml:2: cluster.role: found 'secondary' without primaries, expected "
            "primaries, too",
        ),
        (
            f'[cluster]\nname = "{"é" * 40}"',
            "cogwork.toml:2: cluster.name: found 80 bytes, expected at most 64",
        ),
        (
            '[cluster]\nprimaries = ["a", "a", "b"]',
            'cogwork.toml:2: cluster.primaries[1]: found "a" twice, expected each name once',
        ),
        (
            STREAM + 'replicas = [\n"a",\n"b", "a"]',
            'cogwork.toml:5: stream[0].replicas[2]: found "a" twice, expected each name once',
        ),
        (QUEUE + 'replicas = ["a", "a"]', "cogwork.toml:3: queue[0].replicas[1]: found"),
        (
            '[[address]]\nprefix = "q/"\nreplicas = ["a", "a"]',
            "cogwork.toml:3: address[0].replicas[1]: found",
        ),
    ],
)
def test_who_is_named_twice_is_named_with_the_line(text: str, message: str) -> None:
    assert message in str(error_of(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[[stream]]\naddress = "queue/x"',
            'cogwork.toml:2: stream[0].address: found "queue/x", expected a stream\'s address,'
            " such as stream/NAME",
        ),
        ('[[stream]]\naddress = "foo"', 'stream[0].address: found "foo"'),
        ('[[stream]]\naddress = "stream"', 'stream[0].address: found "stream"'),
        ('[[stream]]\naddress = "stream/"', 'stream[0].address: found "stream/"'),
        ('[[stream]]\naddress = "/"', 'stream[0].address: found "/"'),
        (
            '[[queue]]\naddress = "stream/y"',
            'cogwork.toml:2: queue[0].address: found "stream/y", which is for a stream,'
            " expected a queue's address, such as queue/NAME",
        ),
        ('[[queue]]\naddress = "/topic/y"', 'found "/topic/y", which is for a topic'),
        ('[[queue]]\naddress = "/"', 'queue[0].address: found "/", expected a queue\'s address'),
        (
            STREAM + 'capture = [\n"topic/a",\n"queue/x"]',
            'cogwork.toml:5: stream[0].capture[1]: found "queue/x", expected a topic, such as'
            " topic/flights.#",
        ),
        (STREAM + 'capture = ["topic"]', 'stream[0].capture[0]: found "topic"'),
        (
            f'{STREAM}capture = [\n"topic/a",\n"/topic/{"w." * 128}w"]',
            "cogwork.toml:5: stream[0].capture[1]: found 129 words, expected at most 128",
        ),
        (
            '[[vhost]]\nname = "blue"\n[[vhost.stream]]\naddress = "foo"',
            'cogwork.toml:4: vhost[0].stream[0].address: found "foo"',
        ),
    ],
)
def test_what_is_at_an_address_of_something_else_is_refused(text: str, message: str) -> None:
    assert message in str(error_of(text))


@pytest.mark.parametrize(
    "text",
    [
        STREAM + 'capture = ["topic/flights.#", "/topic/*.urgent"]',
        f'{STREAM}capture = ["/topic/{"w." * 127}w"]',
        '[[stream]]\naddress = "/stream/a"',
        '[[stream]]\naddress = "stream/$telemetry"\n[telemetry]',
        '[[address]]\nprefix = "log/"\nkind = "stream"\n[[stream]]\naddress = "log/a"',
        '[[address]]\nprefix = "news/"\nkind = "topic"\n' + STREAM + 'capture = ["news/#"]',
        '[[queue]]\naddress = "jobs"',
        '[[queue]]\naddress = "/work/a.b"',
        '[[queue]]\naddress = "broadcast/a"',
        '[[node]]\naddress = "own/"\nkind = "own:Node"\n[[queue]]\naddress = "own/a"',
        '[[vhost]]\nname = "blue"\n[[vhost.address]]\nprefix = "log"\nkind = "stream"\n'
        '[[vhost.stream]]\naddress = "log/a"',
    ],
)
def test_other_addresses_are_taken(text: str) -> None:
    parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[queue]]\naddress = "//a"', 'queue[0].address: found "//a", expected one / before'),
        (QUEUE + 'dead_letter = "//"', 'cogwork.toml:3: queue[0].dead_letter: found "//"'),
        ('[[address]]\nprefix = "//a"', 'cogwork.toml:2: address[0].prefix: found "//a"'),
        ('[[address]]\npattern = "//a.#"', 'address[0].pattern: found "//a.#"'),
        ('[[address]]\npattern = "/"', 'address[0].pattern: found "/", expected words'),
        ('[[schema]]\naddress = "/"', 'cogwork.toml:2: schema[0].address: found "/"'),
        ('[[schema]]\naddress = "//a"', 'schema[0].address: found "//a"'),
        ('[[node]]\naddress = "//a"\nkind = "sink"', 'node[0].address: found "//a"'),
    ],
)
def test_an_address_begins_with_one_slash_at_most(text: str, message: str) -> None:
    assert message in str(error_of(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            QUEUE + '[[queue]]\naddress = "/queue/a"',
            'cogwork.toml:4: queue[1].address: found "queue/a" as in queue[0]',
        ),
        (STREAM + '[[stream]]\naddress = "/stream/a"', "cogwork.toml:4: stream[1].address: found"),
        (QUEUE + 'dead_letter = "/queue/a"', "cogwork.toml:3: queue[0].dead_letter: found the q"),
    ],
)
def test_a_slash_before_it_makes_no_other_address(text: str, message: str) -> None:
    assert message in str(error_of(text))


def test_the_old_name_of_primaries_is_taken() -> None:
    for key in ("primaries", "voters"):
        found = parse(f'[cluster]\n{key} = ["a", "b"]').cluster
        assert found.primaries == ["a", "b"]
    with pytest.raises(ConfigurationError, match="primaries alone: voters is old"):
        parse('[cluster]\nprimaries = ["a", "b"]\nvoters = ["a"]')


def test_primaries_of_the_command_line_win() -> None:
    file = parse('[cluster]\nprimaries = ["a", "b"]')
    assert with_options(file, primaries="c, d,e").cluster.primaries == ["c", "d", "e"]
    for wrong in ("", "a,,b", "a,b,c,d,e,f"):
        with pytest.raises(OptionError, match=r"--primaries: found .* expected up to 5 ids"):
            with_options(file, primaries=wrong)
    with pytest.raises(ConfigurationError, match=r'cluster.primaries\[1\]: found "a" twice'):
        with_options(file, primaries="a,a")
