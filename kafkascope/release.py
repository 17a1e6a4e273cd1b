"""The version of kafkascope that runs."""

from functools import cache


@cache
def release() -> str:
    """Return the version; "unknown" for a checkout that is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("kafkascope")
    except PackageNotFoundError:
        return "unknown"
