"""Values and composites, to bytes and back."""
