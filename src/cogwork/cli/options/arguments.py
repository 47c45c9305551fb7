"""Arguments that are given as `K=V`."""

from __future__ import annotations

import json

import click

__all__ = ("read_pairs",)


def read_pairs(
    _context: click.Context, _parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, object]:
    """Read each `K=V`; the value is JSON, or text where it is none."""
    arguments: dict[str, object] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{pair!r} is no K=V")
        try:
            arguments[key] = json.loads(text)
        except (ValueError, RecursionError):
            arguments[key] = text
    return arguments
