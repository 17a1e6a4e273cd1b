"""Reads steps from stdin, `Produce topic=a count=60`, answers each with a line of JSON.

java/Driver.java does the same.
"""

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

Arguments = dict[str, str]


def serve(steps: Mapping[str, Callable[[Arguments], dict[str, Any]]]) -> None:
    """Run steps until stdin ends."""
    for line in sys.stdin:
        name, *pairs = line.split()
        try:
            answer = steps[name](dict(pair.split("=", 1) for pair in pairs))
        except Exception as failure:  # the answer of the step, and the trace in the log
            traceback.print_exc()
            answer = {"failed": repr(failure)}
        print(json.dumps(answer), flush=True)
