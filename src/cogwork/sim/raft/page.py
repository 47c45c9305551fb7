"""Figures in a page: what lies between two marks is written by whoever measured it."""

from __future__ import annotations

from pathlib import Path

__all__ = ("write_part",)


def write_part(page: str, name: str, text: str) -> None:
    """Replace what is between `<!-- NAME: generated -->` and `<!-- NAME: end -->`.

    Raises:
        ValueError: The marks are not there.
    """
    path = Path(page)
    whole = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: generated -->\n", f"<!-- {name}: end -->"
    before, found_begin, rest = whole.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"{page} has no marks of {name}")
    path.write_text(f"{before}{begin}{text.strip()}\n{end}{after}", encoding="utf-8")
