"""What the interop tests cannot do without, and what happens when it is absent."""

import os
import shutil

import pytest

__all__ = ["CI", "need"]

CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def need(*tools: str) -> None:
    """When a program is absent: skip the test on a user's machine, fail it in CI."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if not missing:
        return
    reason = f"needs {', '.join(missing)} on the PATH"
    if CI:
        pytest.fail(reason)
    pytest.skip(reason)
