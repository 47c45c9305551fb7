"""What the configuration refuses of kinds of nodes, before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from whole_configuration import error_of

from cogwork.config.reading import ConfigurationError, load, with_options

if TYPE_CHECKING:
    from pathlib import Path

NODE = '[[node]]\naddress = "own/"\nkind = "{}"\n'
ADDRESS = '[[address]]\nprefix = "own/"\nkind = "{}"\n'
EXPECTED = (
    "expected one of direct, unavailable, cbs, exchange, management, queue, sink, stream, topic, "
    'or "package.module:Class"'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NODE.format("snik"), f'cogwork.toml:3: node[0].kind: found "snik", {EXPECTED}'),
        (ADDRESS.format("qeue"), f'cogwork.toml:3: address[0].kind: found "qeue", {EXPECTED}'),
        (
            '[[vhost]]\nname = "v"\n' + NODE.format("snik").replace("[[", "[[vhost."),
            'cogwork.toml:5: vhost[0].node[0].kind: found "snik"',
        ),
    ],
)
def test_kinds_that_nobody_has_installed_are_refused(text: str, message: str) -> None:
    assert message in str(error_of(text))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("no.such:Thing", "cannot be loaded: No module named 'no'"),
        ("cogwork.nodes.sink:Thing", "cannot be loaded: module 'cogwork.nodes.sink' has no"),
        ("os:sep", "cannot be called, expected a class of nodes"),
    ],
)
@pytest.mark.parametrize("table", [NODE, ADDRESS])
def test_kinds_that_cannot_be_loaded_are_refused_at_the_start(
    table: str, kind: str, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text(table.format(kind))
    with pytest.raises(ConfigurationError) as caught:
        with_options(load(file), file=file)
    assert f"{file}:3: " in str(caught.value)
    assert f'[0].kind: found "{kind}", which {reason}' in str(caught.value)


def test_kinds_that_can_be_loaded_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "cogwork.toml"
    file.write_text(NODE.format("cogwork.nodes.sink:SinkNode") + ADDRESS.format("direct"))
    with_options(load(file), file=file)
