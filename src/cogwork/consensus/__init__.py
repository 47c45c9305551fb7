"""Total order: the contract that every engine keeps, and the engines."""
