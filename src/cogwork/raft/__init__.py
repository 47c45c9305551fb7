"""Raft: one log for several containers, without sockets, disks or clocks.

Pure decisions: events and the time go in, a `Ready` comes out. `group.Group` is one consensus
group, `host.RaftHost` all groups of a container; `docs/internals/raft.md` specifies both.
"""

from pathlib import Path

from cogwork import freshness

for _declaration in sorted(Path(__file__).parent.glob("*.pxd")):
    freshness.load(f"cogwork.raft.{_declaration.stem}")
