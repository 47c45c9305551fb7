"""Streams on groups of replicas in the containers of a mesh: the engine `raft`."""

from cogwork import freshness

freshness.load("cogwork.replication.entry")
