"""The seeded world of a raft group: replicas with disks that lie and break, and clients.

Theory of operation. The replicas are the product's own sans-IO core; clock, network, disks and
clients are simulated, and everything follows from one seed. An invariant checker looks on at every
step: it keeps what any replica was ever allowed to believe, and compares (`invariant_checker`).
    Scenarios are
short, a few hundred steps each, because many short ones find more than one long one.
"""
