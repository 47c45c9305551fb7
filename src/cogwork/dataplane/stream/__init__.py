"""A stream's messages, coming in and going out."""
