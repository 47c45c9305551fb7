"""Analytics of an archive: rates, sizes, latencies, traffic between containers, capacity."""
