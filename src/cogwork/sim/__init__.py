"""The seeded world: a clock, a network with faults, containers that crash, and checkers.

Everything in it follows from a seed. It runs the pure mesh as containers do, without sockets.
"""
