"""The parts of the screens."""

__all__: list[str] = []
