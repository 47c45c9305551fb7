"""The write-ahead log and the segments behind it."""
