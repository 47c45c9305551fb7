"""A client's sending and receiving."""
