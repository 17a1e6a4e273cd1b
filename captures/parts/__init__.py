"""Where a capture may be cut so that many tasks read it at once."""
