"""The mesh at work: connections to other containers, tunnels through them, and what is routed there."""
