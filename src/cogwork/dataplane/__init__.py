"""The compiled data plane: scan, route, emit; addresses and outlets; the codec and messages."""

from cogwork import freshness

for _name in ("codec", "composites", "sections", "messages"):
    freshness.load(f"cogwork.dataplane.{_name}")
