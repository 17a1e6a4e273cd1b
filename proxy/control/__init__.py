"""Controls a running proxy from outside: the control socket, its client, metrics."""
