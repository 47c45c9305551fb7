"""The calling half: calls, casts and fanouts, and where their replies come."""
