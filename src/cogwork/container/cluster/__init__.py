"""What a container shares with others by consensus, and keeps on its disk."""
