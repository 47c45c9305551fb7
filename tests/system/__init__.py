"""The whole container, as its users meet it: through the command line and over sockets."""
