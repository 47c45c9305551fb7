"""Total order: the contract that every engine keeps, and the engines."""

from cogwork import freshness

freshness.load("cogwork.consensus.chunks")
