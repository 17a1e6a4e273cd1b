"""Captures of the same traffic: found, and read as one that holds what any of them holds.

The same packets may be captured on two hosts, in rotated files that overlap, or be given twice.
`inputs` opens paths; `groups` finds the files that hold the same packets and how far their clocks
are apart; `merging` decides which packets are read, in which order. Knows packets and
their TCP headers, no reassembly.
"""

from typing import Final

# Bytes of payload by which segments are told apart.
LOOKED: Final = 16
