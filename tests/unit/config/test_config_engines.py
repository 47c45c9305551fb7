"""What the configuration refuses of engines, and of what needs a disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from whole_configuration import error_of

from cogwork.config.reading import ConfigurationError, load, parse, with_options

if TYPE_CHECKING:
    from pathlib import Path

STREAM = '[[stream]]\naddress = "stream/a"\n'
DISK = '[[queue]]\naddress = "queue/a"\ndurability = "disk"'
REPLICATED = '[[queue]]\naddress = "queue/a"\ndurability = "replicated"'
ADDRESS = '[[address]]\nprefix = "queue/"\n'
RAFT = STREAM + 'engine = "raft"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STREAM + 'engine = "orbb"', 'cogwork.toml:3: stream[0].engine: found "orbb", expected'),
        (
            STREAM + "[stream.options]\nretain = 1",
            'cogwork.toml:4: stream[0].options.retain: found an option that the engine "orb" does'
            " not have, expected one of retention_s, retention_bytes, retention_records",
        ),
        (
            STREAM + 'engine = "raft"\noptions = { acks = 1 }',
            'cogwork.toml:4: stream[0].options.acks: found an option that the engine "raft" does'
            " not have, expected one of retention_s, retention_bytes, retention_records, replicas",
        ),
        (
            STREAM + 'options = { retention_s = "long" }',
            "cogwork.toml:3: stream[0].options.retention_s: found 'long', expected a positive",
        ),
        (
            STREAM + 'engine = "raft"\noptions = { retention_bytes = 0 }',
            "cogwork.toml:4: stream[0].options.retention_bytes: found 0, expected a positive",
        ),
        (STREAM + 'replicas = ["a"]', "cogwork.toml:3: stream[0].replicas: found an option that"),
        ('[[engine]]\nname = "orbb"', 'cogwork.toml:2: engine[0].name: found "orbb", expected'),
        (
            '[[engine]]\nname = "orb"\n[engine.options]\nurl = "x"',
            "cogwork.toml:3: engine[0].options: found the engine orb has no option 'url'",
        ),
    ],
)
def test_what_is_wrong_with_an_engine_is_refused(text: str, message: str) -> None:
    assert message in str(error_of(text))


@pytest.mark.parametrize(
    "text",
    [
        STREAM + 'engine = "own.engines:Host"\noptions = { any = 1 }',
        STREAM + "options = { retention_s = 5 }",
        STREAM + 'engine = "raft"\nreplicas = ["a", "b"]',
    ],
)
def test_what_an_engine_has_is_taken(text: str) -> None:
    parse(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (DISK, '3: queue[0].durability: found "disk", expected a data_dir'),
        (REPLICATED, '3: queue[0].durability: found "replicated", expected a data_dir'),
        (RAFT, '3: stream[0].engine: found "raft", expected a data_dir'),
        (ADDRESS + 'durability = "disk"', '3: address[0].durability: found "disk", expected'),
        (ADDRESS + 'durability = "replicated"', '3: address[0].durability: found "replicated"'),
        (
            '[[vhost]]\nname = "v"\n' + RAFT.replace("[[stream]]", "[[vhost.stream]]"),
            '5: vhost[0].stream[0].engine: found "raft"',
        ),
    ],
)
def test_what_needs_a_disk_is_refused_without_one(text: str, place: str, tmp_path: Path) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        with_options(load(file), file=file)
    assert f"{file}:{place}" in str(caught.value)
    with_options(load(file), data_dir="data", file=file)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (STREAM + 'engine = "no.such:Host"', "3: stream[0].engine"),
        ('[[engine]]\nname = "no.such:Host"', "2: engine[0].name"),
        (
            '[[vhost]]\nname = "v"\n'
            + STREAM.replace("[[stream]]", "[[vhost.stream]]")
            + 'engine = "no.such:Host"',
            "5: vhost[0].stream[0].engine",
        ),
    ],
)
def test_an_engine_that_cannot_be_loaded_is_refused_at_the_start(
    text: str, place: str, tmp_path: Path
) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        with_options(load(file), file=file)
    reason = "which cannot be loaded: No module named 'no', expected an engine that can be loaded"
    assert str(caught.value) == f'{file}:{place}: found "no.such:Host", {reason}'


def test_an_engine_that_is_no_class_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigurationError, match='found "os:sep", which cannot be called'):
        with_options(parse(STREAM + 'engine = "os:sep"'))


@pytest.mark.parametrize("text", [REPLICATED, RAFT])
def test_a_cluster_elsewhere_has_the_disks(text: str) -> None:
    with_options(parse('id = "x"\n[cluster]\nprimaries = ["a", "b", "c"]\n' + text))


@pytest.mark.parametrize(
    ("engine", "url"),
    [("redis", "redis+sentinel://:very-secret@here:1"), ("etcd", "htp://ann:very-secret@here:1")],
)
def test_no_password_is_shown_of_a_url_that_no_engine_can_use(engine: str, url: str) -> None:
    text = f'[[engine]]\nname = "{engine}"\n[engine.options]\nurl = "{url}"'
    error = str(error_of(text))
    assert "url is like" in error
    assert "secret" not in error
