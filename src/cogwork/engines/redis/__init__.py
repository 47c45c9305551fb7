"""The engine `redis`: streams on a Redis server, as its type stream.

Theory of operation. An entry of ours is an entry of a Redis stream with the id `position-0`. A Lua
script compares the last position, held in a key beside it, and appends: scripts run alone. Redis
answers when its append-only file is as the server's `appendfsync` says, and replicates behind the
answer's back: a replica that takes over has lost what was answered last. So this engine promises
one disk at best, and never uniform agreement.
"""

from cogwork.engines.redis.host import RedisHost

__all__ = ("RedisHost",)
