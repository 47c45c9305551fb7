"""The asyncio client and its synchronous facade."""
