"""Processes of the command line: workers, fleets, their logs, signals and service managers.

`supervisor` keeps the workers of one container running, `fleet` runs several containers as one.
"""
