"""A small shop whose clients do everything wrong once: makes the capture behind the demo."""
