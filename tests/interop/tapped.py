"""Runs kafkascope for a binding, and writes down each line between them: `tapped.py LOG COMMAND...`

The binding takes it for kafkascope. Lines of the log: `PID > LINE` to kafkascope, `PID < LINE` from
it."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO


def main() -> None:
    log, *command = sys.argv[1:]
    if "--control" not in command:
        os.execv(command[0], command)
    with (
        Path(log).open("ab", buffering=0) as tap,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child,
    ):
        assert child.stdin is not None
        assert child.stdout is not None

        def copy(source: IO[bytes], target: IO[bytes], mark: str) -> None:
            for line in iter(source.readline, b""):
                tap.write(f"{os.getpid()} {mark} ".encode() + line)
                try:
                    target.write(line)
                    target.flush()
                except OSError:
                    return

        def towards() -> None:
            copy(sys.stdin.buffer, child.stdin, ">")  # type: ignore[arg-type]
            child.stdin.close()  # type: ignore[union-attr]

        threading.Thread(target=towards, daemon=True).start()
        copy(child.stdout, sys.stdout.buffer, "<")
    sys.stdout.flush()
    os._exit(child.returncode if child.returncode >= 0 else 1)  # a thread may still read stdin


if __name__ == "__main__":
    main()
