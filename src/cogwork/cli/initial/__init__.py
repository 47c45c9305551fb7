"""What `cogwork init` writes: configurations with comments, passwords, a private authority."""
