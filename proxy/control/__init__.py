"""A running proxy steered from outside: the control socket, its other end, metrics."""
