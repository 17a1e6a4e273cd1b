"""Makes `captures/samples/demo.pcap.zst` of the whole shop: `python -m tests.interop.demo.derive`.

All packets from and to the machines of some programs, as tcpdump wrote them: nothing is composed,
so that connections, retransmissions and times are those of the minute in which it happened.
"""

import subprocess

from zstandard import ZstdCompressor, ZstdDecompressor

from tests.interop.demo.machines import IN_THE_DEMO, MACHINES
from tests.kit.samples import ROOT

SHOP = ROOT / "tests" / "analyzer" / "captures" / "shop.pcap.zst"
TARGET = ROOT / "captures" / "samples" / "demo.pcap.zst"
LIMIT_BYTES = 300_000


def packed(capture: bytes) -> bytes:
    """A capture as it is kept."""
    data = ZstdCompressor(level=22).compress(capture)
    print(f"{len(capture)} bytes, compressed {len(data)}")
    if len(data) > LIMIT_BYTES:
        raise RuntimeError("too large")
    return data


def main() -> None:
    """Choose packets by address."""
    hosts = " or ".join(f"host {MACHINES[name]}" for name in IN_THE_DEMO)
    chosen = subprocess.run(
        ["tcpdump", "-r", "-", "-w", "-", hosts],
        input=ZstdDecompressor().decompress(SHOP.read_bytes()),
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    TARGET.write_bytes(packed(chosen))


if __name__ == "__main__":
    main()
