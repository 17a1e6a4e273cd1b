"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Timing is no property of the code: machines differ, and a deadline makes a slow one red.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("soak", settings.get_profile("default"), max_examples=2000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default")
)
