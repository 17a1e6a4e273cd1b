"""The proxy that the screens are attached to."""
