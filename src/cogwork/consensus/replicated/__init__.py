"""Streams on groups of replicas in the containers of a mesh: the engine `raft`."""
