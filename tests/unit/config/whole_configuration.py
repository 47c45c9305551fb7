"""A configuration with everything in it."""

from __future__ import annotations

import pytest

from cogwork.config.reading import ConfigurationError, parse

HASH = "scrypt$16384$8$1$c2FsdHNhbHRzYWx0c2FsdA==$NSQDZDgyBdmShxmx4LUzp3u3wtRZ2DJDv0pCrSY9a4M="
WHOLE = f"""
id = "north"
data_dir = "data"
listen = ["127.0.0.1:5672", {{ host = "::1", port = 0 }}]

[[user]]
name = "alice"
password_hash = "{HASH}"
[[user.permissions]]
address = "queue/#"
rights = ["send", "receive"]

[anonymous]
permissions = []
mesh = false

[[link]]
url = "amqps://north:s%65cret@[::2]"
cost = 7
certificate = "north.pem"
ca = "/etc/ca.pem"

[mesh]
heartbeat_s = 0.5
redirect_margin = 10

[[vhost]]
name = "blue"
[[vhost.address]]
pattern = "prices.*.#"
fanout = "single"
bias = "spread"
[[vhost.queue]]
address = "queue/blue"

[[address]]
prefix = "work/"
kind = "queue"
ttl_s = 3600
dead_letter = "queue/dead"
maximum_length = 1000
maximum_bytes = 5_000_000
maximum_length_policy = "reject"
maximum_delivery_count = 5
in_doubt = "park"
in_doubt_timeout_s = 0.5
priorities = 3
delay = false
ordering = "group-id"
deduplication_window_s = 600
deduplication_count = 10

[[node]]
address = "greetings"
kind = "cogwork.nodes.sink:SinkNode"
options = {{ language = "mi", loud = true }}

[limits]
connections = 5
"""


def error_of(text: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as failure:
        parse(text)
    return failure.value
