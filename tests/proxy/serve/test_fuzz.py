"""Clients that ask anything at all: a served capture answers or closes, without a fault of ours."""

import asyncio
import contextlib
import random

import pytest

from kafkascope.proxy.limits import Limits
from tests.kit.served import Served, serving
from tests.proxy.mutations import requests, wrong_request

SAMPLE_NAMES = ("libraries.pcap", "rebalance.pcap", "transactions.pcap", "librdkafka.pcap")
AT_ONCE = 20
"""Requests of a connection that does not wait for answers."""


async def send(served: Served, *frames: bytes) -> None:
    link = await served.link()
    with contextlib.suppress(TimeoutError, ConnectionError):
        link.send(*frames)
        async with asyncio.timeout(0.05):
            while await link.reader.read(1 << 16):
                pass
    link.writer.close()


async def check(sample: str, seed: int, count: int) -> None:
    dice = random.Random(seed)
    known = requests(sample)
    async with serving(sample, limits=Limits(forming_s=0.001)) as served:
        good = await served.peer()
        for _ in range(count // AT_ONCE):
            frames = [wrong_request(dice.choice(known), dice) for _ in range(AT_ONCE)]
            # One connection each for most: the first that cannot be read closes it.
            await asyncio.gather(*(send(served, each) for each in frames[1:]))
            await send(served, *frames)
        await served.works(good)


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
async def test_no_request_is_a_fault_of_ours(sample: str) -> None:
    await check(sample, 1, 200)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_nor_are_ten_thousand() -> None:
    for seed in range(10):
        await check(SAMPLE_NAMES[seed % len(SAMPLE_NAMES)], 100 + seed, 1_000)
