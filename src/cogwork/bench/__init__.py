"""A load generator for AMQP 1.0: compiled, a process a role, and it checks what arrives.

The compiled core (`frame`, `wire`, `producer`, `consumer`, `rpc`) moves frames between C buffers
and a socket; everything around a connection's life (`peer`, `roles`, `worker`, `crew`, `scenario`)
is plain Python.
"""

from cogwork import freshness

for _name in ("frame", "histogram", "wire", "producer", "consumer", "rpc"):
    freshness.load(f"cogwork.bench.{_name}")
