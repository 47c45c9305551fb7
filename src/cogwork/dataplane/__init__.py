"""The compiled data plane: scan, route, emit; addresses and outlets; the codec and messages."""

from pathlib import Path

from cogwork import freshness

for _declaration in sorted(Path(__file__).parent.glob("*.pxd")):
    if _declaration.with_suffix(".py").exists():  # the others are all inline: there is no module
        freshness.load(f"cogwork.dataplane.{_declaration.stem}")
