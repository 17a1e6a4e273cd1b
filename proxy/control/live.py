"""Streams of packets on demand: recordings that begin while the proxy runs."""

from __future__ import annotations

import asyncio
import time
from itertools import count
from typing import TYPE_CHECKING, Final

from kafkascope.proxy.recording.recorder import Recorder

if TYPE_CHECKING:
    from kafkascope.proxy.engine.server import KafkaProxy
    from kafkascope.proxy.recording.sinks import PipeSink

# Until connections that stood in the middle of a frame are looked at again.
AGAIN_S: Final = 0.05


class PacketStreams:
    """The streams of one proxy.

    A proxy that records nothing has no recorder; one is made for the first stream and ends with the
    last. Open connections are tapped between two frames, so that no part of a frame whose secrets
    were not masked gets out."""

    def __init__(self, proxy: KafkaProxy) -> None:
        self._proxy = proxy
        self._own: Recorder | None = None
        self._numbers = count(1)
        self._streams: set[PipeSink] = set()

    def add(self, fd: int) -> PipeSink:
        """Write packets into a pipe or socket from now on; it is closed at the end."""
        proxy, name = self._proxy, f"control-{next(self._numbers)}"
        recorder = proxy.recorder
        if recorder is None:
            recorder = self._own = Recorder(secrets=proxy.hub.with_secrets)
            recorder.hub = proxy.hub
            sink = recorder.add_pipe(fd, name)
            recorder.start()
            proxy.recorder = proxy.hub.recording = recorder
            self._tap()
        else:
            sink = recorder.add_pipe(fd, name)
        self._streams.add(sink)
        return sink

    async def remove(self, sink: PipeSink) -> None:
        self._streams.discard(sink)
        recorder = self._proxy.recorder
        if recorder is None:
            return
        recorder.remove(sink)
        metrics = self._proxy.hub.metrics
        metrics.counters["recorder_dropped_total"].pop(sink.name, None)
        if sink.dropped:
            metrics.add("recorder_dropped_total", sink.name, sink.dropped)
        if recorder is self._own and not self._streams:
            for handler in self._proxy.handlers:
                if handler.relay is not None:
                    handler.relay.context.tap = None
            self._own = self._proxy.recorder = self._proxy.hub.recording = None
            await asyncio.to_thread(recorder.stop)
        await asyncio.to_thread(sink.stop, 1.0)

    def _tap(self) -> None:
        recorder = self._own
        if recorder is None:
            return
        later = False
        for handler in self._proxy.handlers:
            relay = handler.relay
            if relay is None or relay.context.tap is not None or relay.context.over:
                continue
            if all(d.left == 0 and not d.head and d.stop is None for d in relay.directions):
                relay.taps.start(recorder, time.time_ns())
            else:
                later = True
        if later:
            asyncio.get_running_loop().call_later(AGAIN_S, self._tap)
