"""One input read by several processes, each of which takes some of the connections.

A worker does what one process does, and knows when one process would do it; `gathering` puts
together what they tell, in that order. Where connections must know of each other while they are
read, one process reads alone (`Alone`). Knows no commands and no output.
"""
