"""What `cogwork doctor` looks at: running containers, and configurations that are not running."""
