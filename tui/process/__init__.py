"""The process around the screens: its start, its memory, and the proxy that it is attached to."""
