"""The commands of `cogwork pipeline`, one a module."""
