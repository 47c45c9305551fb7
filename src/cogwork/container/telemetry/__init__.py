"""What a container tells of itself and of its queues in streams: heartbeats, and audits."""
