"""The connection to a container: where to connect, logging in, redirects, connecting again."""
