"""What a plug-in may see: nodes, their effects, the store."""
