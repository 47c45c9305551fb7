"""The composition root: the life cycle of a container, and the wiring of all that it has.

`container.Container` puts everything together, `service` runs it in the foreground. The rooms:
`connections` and `security` (who connects, and may do what), `vhost` (addresses and nodes), `mesh`
(links to other containers), `federation` (queues over them), `cluster` (what several agree on),
`journals` (queues on disk), `schemas`, `gateways`, `telemetry`, and `management` (what a container
shows of itself).
"""
