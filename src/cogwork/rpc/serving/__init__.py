"""The serving half: methods, the requests that come for them, and when these run."""
