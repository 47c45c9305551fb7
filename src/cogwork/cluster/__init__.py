"""What all containers of a cluster agree on."""
