"""Each command tells programs what it tells people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cogwork.cli.commands import bench_engines, bench_switching
from cogwork.cli.main import cogwork

if TYPE_CHECKING:
    from collections.abc import Iterator


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Find all commands, and by which words they are called."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, f"{path}{name} ")
        else:
            yield path + name, found


def test_each_command_has_json() -> None:
    found = dict(commands(cogwork))
    found |= {f"bench {each.name}": each for each in (bench_engines.engines,)}
    found |= {f"bench {each.name}": each for each in (bench_switching.isr, bench_switching.xsr)}
    assert {"send", "queue purge", "stream trim", "pipeline run", "bench isr"} <= set(found)
    without = {
        path
        for path, command in found.items()
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == {"shell"}, "whose commands have it"
