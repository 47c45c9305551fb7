"""`cogwork shell`: the commands of the command line, at one container, without its URL."""
