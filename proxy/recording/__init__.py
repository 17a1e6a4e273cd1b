"""Live traffic into capture files and pipes, beside the traffic and never in its way."""
