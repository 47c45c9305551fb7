"""Lets tests of every kind import the helpers that lie beside this file."""
