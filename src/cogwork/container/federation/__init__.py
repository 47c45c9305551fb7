"""Queues over linked containers: a part in each, and who takes what from where.

`queue_federation` and `upstreams` let consumers of one container take items of another's part,
`partitions` and `owners` say which container takes a message, `moving` hands a leaving container's
items over. It uses the links of `container.mesh`; begin reading at `queue_federation`.
"""
