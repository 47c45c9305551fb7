"""A message's sections, and `Message`."""
