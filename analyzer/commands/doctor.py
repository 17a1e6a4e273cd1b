"""`kafkascope doctor`: what this machine lacks for what, and the command that gives it."""

from __future__ import annotations

import locale
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from kafkascope.analyzer.commands.help import command
from kafkascope.analyzer.commands.tables import TableFormat, print_table, table_options
from kafkascope.analyzer.render.layout import GAP, widths_of
from kafkascope.analyzer.terminal import out
from kafkascope.analyzer.text import filled, safe, wrapped
from kafkascope.extras import EXTRAS, installed
from kafkascope.kernel import PLAIN
from kafkascope.kernel.compiled import CHANGED, NOT_COMPILED
from kafkascope.release import release

LEAST_PYTHON: Final = (3, 11)
# Bit of CAP_NET_RAW among the capabilities of Linux.
NET_RAW: Final = 13

Word = Literal["ok", "missing", "note"]


class MachineCheck(NamedTuple):
    """One line of the table."""

    what: str
    word: Word
    text: str
    advice: str = ""
    """One command or sentence, where something is missing."""


TOOLS: Final = (
    ("dumpcap", "captures without root, for members of its group"),
    ("tcpdump", "captures"),
    ("tshark", "only for comparing with Wireshark"),
)
ADVICE: Final = {
    NOT_COMPILED: "make setup with a C compiler, or a wheel for this platform",
    CHANGED: "make setup",
}
"""What makes the kernel run compiled, by the reason why it does not."""


@command()
@table_options
def doctor(how: TableFormat) -> int:
    """Check dependencies and permissions.

    Lists Python, the terminal, capture permissions, and missing dependencies with the features
    they enable. Changes nothing, and always exits with 0.
    """
    checks = [*_program(), *_terminal(), *_capturing(), *_extras()]
    if how.name == "table" and how.fit is not None:
        signs = {"ok": "ok ", "missing": "!  ", "note": "-  "}
        names = [f"{signs[check.word]} {check.what}" for check in checks]
        (width,) = widths_of([name] for name in names)
        for name, check in zip(names, checks, strict=True):
            advice = f": {check.advice}" if check.advice else ""
            begin = filled(name, width) + GAP
            text = safe(check.text) + advice
            if how.wide:
                out(begin + text)
                continue
            for part in wrapped(text, how.fit, indent=begin, hanging=" " * len(begin)):
                out(part)
    else:
        rows = [(check.what, check.word, check.text, check.advice) for check in checks]
        print_table(("what", "state", "found", "advice"), rows, how)
    return 0


def _program() -> Iterator[MachineCheck]:
    yield MachineCheck("kafkascope", "ok", release())
    version = platform.python_version()
    if sys.version_info < LEAST_PYTHON:
        yield MachineCheck("Python", "missing", version, "3.11 or newer is needed")
    else:
        yield MachineCheck("Python", "ok", f"{version} ({platform.system()} {platform.machine()})")
    if PLAIN:
        yield MachineCheck("kernel", "note", f"plain Python: {PLAIN}", ADVICE.get(PLAIN, ""))
    else:
        yield MachineCheck("kernel", "ok", "compiled")
    private = sys.prefix != sys.base_prefix
    where = "a virtual environment" if private else "the system's environment"
    advice = "" if private else "pipx install . keeps its packages apart"
    yield MachineCheck("environment", "ok" if private else "note", where, advice)


def _terminal() -> Iterator[MachineCheck]:
    term = os.environ.get("TERM", "")
    if not sys.stdout.isatty():
        yield MachineCheck("terminal", "note", "stdout is no terminal")
    elif term in ("", "dumb"):
        yield MachineCheck("terminal", "missing", f'TERM is "{term}"', "export TERM=xterm-256color")
    else:
        size = shutil.get_terminal_size()
        yield MachineCheck("terminal", "ok", f"{term}, {size.columns} x {size.lines}")
    yield _colours(term)
    encoding = (sys.stdout.encoding or locale.getpreferredencoding(False)).lower()
    if encoding.replace("-", "") == "utf8":
        yield MachineCheck("characters", "ok", "UTF-8")
    else:
        advice = "export LC_ALL=C.UTF-8, or use --plain"
        yield MachineCheck("characters", "note", encoding, advice)
    yield _clipboard()


def _colours(term: str) -> MachineCheck:
    if os.environ.get("NO_COLOR"):
        return MachineCheck("colours", "note", "off: NO_COLOR is set")
    if os.environ.get("COLORTERM", "") in ("truecolor", "24bit"):
        return MachineCheck("colours", "ok", "16 million")
    if "256" in term:
        return MachineCheck("colours", "ok", "256")
    return MachineCheck("colours", "note", "16 or fewer, by TERM and COLORTERM")


def _clipboard() -> MachineCheck:
    program = os.environ.get("TERM_PROGRAM", "")
    if program == "Apple_Terminal":
        advice = "copies go to a file; iTerm2 and others take them"
        return MachineCheck("clipboard", "note", "macOS Terminal has no OSC 52", advice)
    if os.environ.get("TMUX"):
        return MachineCheck("clipboard", "note", "tmux", "set -g set-clipboard on, in tmux.conf")
    return MachineCheck("clipboard", "ok", "OSC 52: the terminal decides")


def _capturing() -> Iterator[MachineCheck]:
    found = {name: shutil.which(name) for name, _ in TOOLS}
    for name, use in TOOLS:
        if found[name]:
            yield MachineCheck(name, "ok", str(found[name]))
        elif name == "tshark":
            yield MachineCheck(name, "note", "not installed", use)
        else:
            yield MachineCheck(name, "note", "not installed", f"the system's package {name}: {use}")
    yield _rights(found["dumpcap"])


def _rights(dumpcap: str | None) -> MachineCheck:
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return MachineCheck("capture rights", "ok", "root")
    if _capabilities() >> NET_RAW & 1:
        return MachineCheck("capture rights", "ok", "CAP_NET_RAW")
    if dumpcap is not None and os.access(dumpcap, os.X_OK) and _privileged(Path(dumpcap)):
        return MachineCheck("capture rights", "ok", "through dumpcap")
    advice = "sudo tcpdump -i any -s 0 -U -w - port 9092 | kafkascope -"
    if dumpcap is not None:
        advice = "sudo usermod -aG wireshark $USER, and log in again"
    return MachineCheck("capture rights", "note", "none; files and pipes can still be read", advice)


def _capabilities() -> int:
    """The effective capabilities of this process; 0 where there are none."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _privileged(path: Path) -> bool:
    """Whether a program has rights of its own: the setuid bit, or file capabilities."""
    try:
        if path.stat().st_mode & 0o4000:
            return True
        return hasattr(os, "getxattr") and bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def _extras() -> Iterator[MachineCheck]:
    for name, extra in EXTRAS.items():
        uses = ", ".join(extra.uses)
        if installed(name):
            yield MachineCheck(f"extra {name}", "ok", uses)
        else:
            advice = f"pip install 'kafkascope[{name}]'"
            yield MachineCheck(f"extra {name}", "note", f"not installed; enables {uses}", advice)
