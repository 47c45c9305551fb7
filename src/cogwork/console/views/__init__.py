"""What answers a browser: one module for each part of the console."""
