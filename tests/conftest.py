"""Settings that all tests share."""

import asyncio
import gc
import inspect
import os
import signal
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# Timing is no property of the code: machines differ, and a deadline makes a slow one red.
settings.register_profile(
    "default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "soak", settings.get_profile("default"), derandomize=False, max_examples=2000
)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts what runs in the background so, and a program that a test
    # starts would ignore ctrl-c, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
settings.load_profile(PROFILE)
if PROFILE == "default":
    # The same examples each time, whatever runs before in this process: else Hypothesis tries
    # numbers and texts that it finds in our modules that are loaded by then.
    vars(providers)["_get_local_constants"] = providers.Constants


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With several processes: tests that share brokers or Spark stay together."""
    from tests.distribution import Groups

    return Groups(config, log)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Whose certificates brokers and clients have."""
    from tests.kit.authority import Authority

    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine, for five minutes at most."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {
        name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters
    }
    with asyncio.Runner(loop_factory=pyfuncitem.funcargs.get("loop")) as runner:
        runner.run(asyncio.wait_for(pyfuncitem.obj(**given), 300))
    return True


PACKAGES = frozenset(
    {
        "analyzer",
        "bridges",
        "captures",
        "dissectors",
        "kernel",
        "library",
        "proxy",
        "schemas",
        "tui",
    }
)
"""Folders at the root, which import below `kafkascope` and, by mistake, without it."""


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Free what a module left, so that a file left open is told there and not in a later module;
    fail where one of our modules was loaded twice, below two names."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()  # What stays was looked at: it is not again with each module to come.
        loaded = {name for name in sys.modules if name.partition(".")[0] in PACKAGES}
        assert not loaded, f"import kafkascope.{min(loaded)}"
