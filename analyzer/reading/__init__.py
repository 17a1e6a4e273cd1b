"""Reading of captures as the user asked: filter, range, count, remarks about the whole.

Knows no command line.
"""
