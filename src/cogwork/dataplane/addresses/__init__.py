"""Addresses and what they hold; copies for many; termini within the process."""
