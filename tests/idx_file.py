"""IDX files of unsigned bytes, as MNIST comes in."""

import struct


def idx(dimensions: list[int], values: bytes) -> bytes:
    return bytes([0, 0, 8, len(dimensions)]) + struct.pack(f">{len(dimensions)}I", *dimensions) + values
