"""The process beside the proxy that prints exchanges: `kafkascope ls -` on the recorder's pipe.

It is a process of its own so that dissection never takes the forwarding process's time.
"""

from __future__ import annotations

import subprocess
import sys


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kafkascope.proxy.recording.watch", "-", *arguments]


def start(*arguments: str) -> subprocess.Popen[bytes]:
    # A session of its own: ctrl+c is for the proxy, which ends this one's input.
    return subprocess.Popen(command(*arguments), stdin=subprocess.PIPE, start_new_session=True)


def main() -> None:
    from kafkascope.analyzer.commands.ls import ls

    sys.exit(ls.main(sys.argv[1:], "kafkascope ls", standalone_mode=True))


if __name__ == "__main__":
    main()
