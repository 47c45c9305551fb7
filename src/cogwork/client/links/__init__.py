"""Link ends: links of a client that outlive their connection."""
