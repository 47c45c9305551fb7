"""The codecs that come with the client."""
