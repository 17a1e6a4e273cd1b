"""`kafkascope proxy`."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafkascope.analyzer.commands.help import command
from kafkascope.analyzer.logs import log_to
from kafkascope.analyzer.terminal import say
from kafkascope.captures.inputs.private import PrivateFile
from kafkascope.proxy import answers
from kafkascope.proxy.engine.upstream import unanswered
from kafkascope.proxy.options import ProxyOptions, proxy_options

if TYPE_CHECKING:
    from kafkascope.proxy.control.control import Control
    from kafkascope.proxy.engine.server import KafkaProxy
    from kafkascope.proxy.recording.recorder import Recorder
    from kafkascope.proxy.rules.rules import Rule

_log = logging.getLogger("kafkascope.proxy")
OPEN_HOOK: Final = "open_proxy"
WATCH_S: Final = 20.0
"""For the lines that are still to be printed at the end; a busy machine takes seconds."""
LAST_S: Final = 1.0
"""For the recording after the second signal; then the process ends whatever hangs."""
FAILED: Final = 3
"""Exit code where a file or an address cannot be had."""


@command()
@proxy_options
@click.pass_context
def proxy(context: click.Context, options: ProxyOptions) -> int:
    """Watch, record, and disturb traffic as a Kafka proxy.

    Point clients at the printed address. Each broker of the cluster gets its own listener, and the
    proxy replaces addresses in responses, so that clients keep using it. It prints one line per
    exchange, as `kafkascope ls` does.

    \b
      kafkascope proxy --upstream broker:9092
      kafkascope proxy --upstream broker:9092 -w session.pcapng --quiet
      kafkascope proxy --upstream broker:9092 -Y 'error or latency > 1s'
      kafkascope proxy --upstream broker:9092 --fault 'api == Fetch -> delay 1s'
    """
    log_to(sys.stderr, logging.DEBUG if options.verbose else logging.WARNING)
    if options.open:
        hook = (context.find_root().meta or {}).get(OPEN_HOOK)
        if hook is None:
            raise click.UsageError("--open needs the terminal UI: pip install 'kafkascope[tui]'")
        from kafkascope.proxy.control.opening import run

        return run(options, hook)
    rules = options.rules()
    return _run(Running(options, rules))


def _ended(error: OSError | ValueError) -> Exception:
    """Says what is wrong, with the file or address; how to leave, as all commands do."""
    if not isinstance(error, OSError):
        return click.UsageError(str(error))
    text = error.strerror or str(error)
    say(f"{error.filename}: {text}" if error.filename else text)
    return click.exceptions.Exit(FAILED)


def _run(running: Running) -> int:
    try:
        import uvloop  # type: ignore[import-not-found,unused-ignore]

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    except ImportError:
        runner = asyncio.Runner()
    with runner:
        return runner.run(running.main())


class Running:
    """A proxy as a command: from the options to the exit code."""

    def __init__(self, options: ProxyOptions, rules: list[Rule]) -> None:
        self.options = options
        self.rules = rules
        self._signals = 0
        self._wanted: asyncio.Event
        self._watcher: subprocess.Popen[bytes] | None = None

    async def main(self) -> int:
        """Run until a signal comes."""
        from kafkascope.proxy.control.control import Control, socket_path
        from kafkascope.proxy.control.exposition import Exposition
        from kafkascope.proxy.engine import descriptors
        from kafkascope.proxy.engine.server import KafkaProxy
        from kafkascope.proxy.recording.recorder import Recorder

        options = self.options
        if options.control == "-" and not answers.has_pipes():
            raise click.UsageError(answers.NO_PIPES)
        descriptors.raise_limit()
        self._wanted = asyncio.Event()
        recorder = None
        if options.record is not None or not options.quiet:
            recorder = Recorder(
                options.record,
                rotate_bytes=options.rotate_bytes,
                rotate_s=options.rotate_s,
                keep_bytes=options.keep_bytes,
                overwrite=options.overwrite,
                secrets=options.with_secrets,
            )
        try:
            made = KafkaProxy(
                options.upstream,
                listen=options.listen,
                mode=options.mode,
                port_base=options.port_base,
                advertise=options.advertise,
                allow_brokers=options.allow_brokers,
                proxy_protocol=options.proxy_protocol,
                clamp=options.clamp,
                rules=self.rules,
                recorder=recorder,
                tls=options.tls,
                upstream_tls=options.upstream_tls,
                folder=options.folder,
                buffer_bytes=options.buffer_bytes,
                schemas=options.schemas,
            )
            if recorder is not None and not options.quiet:
                self._watch(recorder)
            await made.start()
        except (OSError, ValueError) as error:
            self._end_watch(0)  # its input may not end: nobody has begun to write
            raise _ended(error) from error
        asyncio.get_running_loop().set_exception_handler(_Failures(made))
        control = Control(made, self._wanted.set)
        self._catch(made, control)
        exposition = Exposition(made, options.metrics_hosts)
        tasks: list[asyncio.Task[None]] = []
        try:
            if options.control == "-":
                tasks.append(asyncio.create_task(self._until_end(control.serve_pipe())))
            elif options.control != "none":
                await control.listen(Path(options.control) if options.control else socket_path())
            if options.metrics is not None:
                await exposition.listen(options.metrics)
            if options.until_eof:
                tasks.append(asyncio.create_task(self._until_end(_stdin_ends())))
        except OSError as error:
            await made.stop(0)
            await control.close()
            self._end_watch()
            raise _ended(error) from error
        self._ready(made)
        _try(made)
        await self._wanted.wait()
        await made.stop(options.grace_s)
        for task in tasks:
            task.cancel()
        await control.close()
        await exposition.close()
        await asyncio.to_thread(self._end_watch)  # a second signal is heard meanwhile
        self._farewell(made)
        return 0

    async def _until_end(self, what: Awaitable[None]) -> None:
        """A parent that is gone wants no proxy any more."""
        try:
            await what
        finally:
            self._wanted.set()

    def _watch(self, recorder: Recorder) -> None:
        from kafkascope.proxy.recording import watch

        options = self.options
        arguments = ["--json"] * options.json
        if options.filter:
            arguments += ["-Y", options.filter, *options.schemas.words()]
        self._watcher = watch.start(*arguments)
        assert self._watcher.stdin is not None
        descriptor = os.dup(self._watcher.stdin.fileno())
        self._watcher.stdin.close()
        recorder.add_pipe(descriptor, "lines")

    def _end_watch(self, timeout_s: float = WATCH_S) -> None:
        """Its input has ended; let it print the rest."""
        if self._watcher is None:
            return
        try:
            self._watcher.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._watcher.kill()
            self._watcher.wait()

    def _catch(self, made: KafkaProxy, control: Control) -> None:
        loop = asyncio.get_running_loop()

        def on_signal() -> None:
            self._signals += 1
            if self._signals == 1:
                self._wanted.set()
            else:
                made.kill()
                loop.call_later(LAST_S, _exit, control)

        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, on_signal)

    def _ready(self, made: KafkaProxy) -> None:
        options = self.options
        what = {"reverse": "bootstrap.servers", "socks5": "SOCKS5 proxy", "transparent": "listener"}
        say(f"{what[made.mode]} {made.bootstrap}")
        if made.tls.ca_file is not None:
            say(f"clients must trust the CA in {made.tls.ca_file}")
        if options.record is not None:
            say(f"recording to {options.record}")
        for rule in made.rules:
            say(f"rule: {rule}")
        if options.ready_file is not None:
            with PrivateFile(options.ready_file, shared=True) as file:
                file.write(f"{made.bootstrap}\n".encode())

    def _farewell(self, made: KafkaProxy) -> None:
        metrics = made.hub.metrics
        requests = sum(metrics.requests.values())
        connections = metrics.get("connections_total")
        say(
            f"{requests} requests on {connections} connections, "
            f"{metrics.bytes[0]} bytes from clients, {metrics.bytes[1]} from brokers"
        )
        for rule in made.rules:
            trigger = getattr(rule, "trigger", None)
            if trigger is not None:
                say(f"rule {rule.name}: matched {trigger.matched}, fired {trigger.fired}")
        recorder = made.recorder
        if recorder is None:
            return
        for sink in recorder.sinks:
            if sink.dropped or sink.failed:
                why = f" ({sink.trouble})" if sink.trouble else " (too slow)"
                say(f"{sink.name}: {sink.dropped} packets are missing{why}")
        if recorder.dropped:
            say(f"recording: {recorder.dropped} reads are missing (too slow)")
        if recorder.files:
            say("capture: " + ", ".join(map(str, recorder.files)))


class _Failures:
    """What the event loop has to say."""

    def __init__(self, made: KafkaProxy) -> None:
        self._hub = made.hub

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            # The loop tries again; it would tell so, with a traceback, each second.
            self._hub.once("accept", f"new connections cannot be accepted: {error}")
        else:
            loop.default_exception_handler(context)


async def _stdin_ends() -> None:
    if not answers.is_pipe(sys.stdin):
        return  # nobody holds it
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1 << 16):
        pass


def _try(made: KafkaProxy) -> None:
    """Report upstreams at which no broker answers. The proxy stays: in containers brokers come
    later. In a thread that nobody waits for: a resolver may take a minute."""
    loop = asyncio.get_running_loop()

    def report(sentence: str) -> None:
        with suppress(RuntimeError):  # the proxy has ended meanwhile
            loop.call_soon_threadsafe(made.hub.once, sentence, sentence)

    arguments = (made.nodes.upstreams, report)
    threading.Thread(target=unanswered, args=arguments, daemon=True).start()


def _exit(control: Control) -> None:
    if control.path is not None:
        control.path.unlink(missing_ok=True)
    os._exit(130)


if __name__ == "__main__":
    sys.exit(proxy.main(standalone_mode=True, prog_name="kafkascope proxy"))
