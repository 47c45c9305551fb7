"""What can be done from the console: forms, and what they ask of the container."""
