"""Records as columns for Arrow, and rows of tables as messages."""
