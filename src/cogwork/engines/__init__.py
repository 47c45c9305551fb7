"""The engines: `orb` in this process, and adapters to servers that keep an ordered log.

The container finds engines by the entry-point group `cogwork.engines` (`registry`); no engine
imports another one. The adapters to Redis, NATS, etcd and Kafka are built on `shared`. The engine
`raft` is the package `cogwork.replication`.
"""
