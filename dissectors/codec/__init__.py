"""Products of layouts: readers, writers, construct structs, trees, JSON, printed grammar."""
