"""The kernel: typed Python that reads ordinary Kafka connections, compiled by mypyc where there is
a compiler and run as it is where there is none. It imports nothing else of this project."""

from typing import Final

from kafkascope.kernel.compiled import choose

__all__ = ["PLAIN"]

PLAIN: Final = choose(__name__, __path__)
"""Why the kernel runs as plain Python; "" where it is compiled."""
