"""Raft: one log for several containers, without sockets, disks or clocks.

Pure decisions: events and the time go in, a `Ready` comes out. `group.Group` is one consensus
group, `host.RaftHost` all groups of a container; `docs/internals/raft.md` specifies both.
"""
