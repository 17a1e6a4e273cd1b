"""The root of all errors that users of kafkascope may meet. Imports nothing."""


class Error(Exception):
    """Something that kafkascope cannot do; `str()` is a sentence for people."""
