"""Reader and writer of safetensors as its description has it (github.com/huggingface/safetensors), apart from ours."""

import json
import math
import pathlib
import struct

import torch

TYPES = {"U8": torch.uint8, "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64, "I64": torch.int64}


def read(path):
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    if data[8:9] != b"{":
        raise ValueError(f"{path}: the header is no JSON object")
    header, tensors, used = json.loads(data[8 : 8 + length].decode()), {}, 0
    metadata = header.pop("__metadata__", {})
    for name, entry in sorted(header.items(), key=lambda one: one[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        size = math.prod(entry["shape"]) * torch.tensor([], dtype=TYPES[entry["dtype"]]).element_size()
        if begin != used or end - begin != size:
            raise ValueError(f"{path}: {name} leaves a hole, overlaps, or has another size than its shape")
        used = end
        raw = bytearray(data[8 + length + begin : 8 + length + end])
        tensors[name] = torch.frombuffer(raw, dtype=TYPES[entry["dtype"]]).reshape(entry["shape"])
    if len(data) != 8 + length + used or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError(f"{path}: bytes after the last tensor, or metadata that is no text")
    return tensors, metadata


def write(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = bytes(tensor.reshape(-1).view(torch.uint8).tolist())
        dtype = next(word for word, known in TYPES.items() if known == tensor.dtype)
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)
