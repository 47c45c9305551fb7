"""The mesh at work: connections to other containers, tunnels through them, what is routed there."""
