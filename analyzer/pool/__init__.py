"""One input read by several processes, each of which takes some of the connections.

A worker reads its connections as one process does, and never asks the others; `merging` gives the
numbers, which are ranks of what workers know anyway. Where connections depend on each other, one
process reads (`NeedsSingleProcess`). Knows no commands and no output.
"""
