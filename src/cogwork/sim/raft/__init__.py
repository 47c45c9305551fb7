"""The seeded world of a raft group: replicas with disks that lie and break, clients, one judge.

Theory of operation. The replicas are the product's own sans-IO core; clock, network, disks and
clients are simulated, and everything follows from one seed. A judge looks on at every step: it
keeps what any replica was ever allowed to believe, and compares (`judge`). Stories are short, a
few hundred steps each, because many short ones find more than one long one.
"""
