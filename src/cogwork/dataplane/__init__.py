"""The compiled data plane: scan, route, emit; addresses and outlets; the codec and messages."""

from pathlib import Path

from cogwork import freshness

for _declaration in sorted(Path(__file__).parent.glob("*.pxd")):
    if not _declaration.with_suffix(".py").exists():
        continue  # structs alone: nothing was compiled from them
    freshness.load(f"cogwork.dataplane.{_declaration.stem}")
