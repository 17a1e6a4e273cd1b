"""A small shop whose clients do everything wrong once: the maker of the demo capture."""
