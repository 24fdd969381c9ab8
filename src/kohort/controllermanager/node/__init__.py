"""What becomes of nodes that are not well, and of their pods."""
