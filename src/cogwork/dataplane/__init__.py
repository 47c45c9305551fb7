"""The compiled data plane: scan, route, emit; addresses and outlets; the codec and messages."""

from pathlib import Path

from cogwork import freshness

_HERE = Path(__file__).parent

for _declaration in sorted(_HERE.rglob("*.pxd")):
    if _declaration.with_suffix(".py").exists():  # the others are all inline: there is no module
        _parts = _declaration.relative_to(_HERE).with_suffix("").parts
        freshness.load(".".join(("cogwork.dataplane", *_parts)))
