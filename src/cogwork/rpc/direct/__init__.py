"""Calls without a hop: servers listen themselves, and callers that have met them go there."""
