"""What a user wants of captures, read: filter, range, count, remarks about the whole.

Knows no command line.
"""
