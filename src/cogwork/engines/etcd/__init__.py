"""The engine `etcd`: streams on an etcd cluster, through the JSON gateway of its API v3.

Theory of operation. Each entry is a key that ends with its position; one more key holds the last
position, and the log's id. A transaction compares that key, puts the entry and the key's new value:
all or nothing, synchronised on a majority of the members before it is answered. A reader takes
ranges of keys, and watches for more where there are none. The gateway is a part of every etcd, so
an HTTP library that is well kept serves better than a client library that is not.
"""

from cogwork.engines.etcd.host import EtcdHost

__all__ = ("EtcdHost",)
