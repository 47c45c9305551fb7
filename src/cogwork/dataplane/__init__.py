"""The compiled data plane: scan, route, emit; addresses and outlets; the codec and messages."""

from pathlib import Path

from cogwork import freshness

for _declaration in sorted(Path(__file__).parent.glob("*.pxd")):
    freshness.load(f"cogwork.dataplane.{_declaration.stem}")
