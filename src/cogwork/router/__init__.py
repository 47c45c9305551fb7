"""Addresses and patterns: pure decisions, handed to the data plane as plans."""

from pathlib import Path

from cogwork import freshness

for _declaration in sorted(Path(__file__).parent.glob("*.pxd")):
    freshness.load(f"cogwork.router.{_declaration.stem}")
