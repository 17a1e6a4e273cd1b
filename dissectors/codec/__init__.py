"""What is made of a layout: readers, writers, construct structs, trees, JSON, printed grammar."""
