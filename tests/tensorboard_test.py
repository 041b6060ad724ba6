#!/usr/bin/env python3
"""Reads what output.tensorboard writes with a reader of its own, which takes nothing on trust: both sums of each record, and
every byte of each event.

tensorboard_test.py REMUDA
"""

import array
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from idx_file import idx

REMUDA = ""
STEPS = 12

JOB = """
[model]
name = "mlp"
hidden = [16]
[data]
train = {images = "images", labels = "labels"}
test = {images = "images", labels = "labels"}
[train]
epochs = %d
global_batch = 48
learning_rate = 0.05
schedule = "cosine"
[output]
tensorboard = "runs"
%s
"""


def crc32c(data: bytes) -> int:
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def check_sum(data: bytes, masked: bytes) -> None:
    rotated = struct.unpack("<I", masked)[0] - 0xA282EAD8 & 0xFFFFFFFF
    if (rotated >> 17 | rotated << 15) & 0xFFFFFFFF != crc32c(data):
        raise ValueError("a sum is wrong")


def records(data: bytes) -> list[bytes]:
    """All whole records; what a record that was cut off has left at the end is passed over."""
    found, at = [], 0
    while at + 12 <= len(data):
        check_sum(data[at:at + 8], data[at + 8:at + 12])
        length = struct.unpack_from("<Q", data, at)[0]
        end = at + 12 + length
        if end + 4 > len(data):
            break
        check_sum(data[at + 12:end], data[end:end + 4])
        found.append(data[at + 12:end])
        at = end + 4
    return found


def fields(message: bytes) -> list[tuple[int, object]]:
    """The number and the value of each field of a protocol buffer."""
    found, at = [], 0

    def varint() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            value: object = varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            if at + size > len(message):
                raise ValueError("a field is cut off")
            value = message[at:at + size]
            at += size
        found.append((key >> 3, value))
    return found


def event(message: bytes) -> dict:
    """wall_time, step, and file_version or the scalars by their tags."""
    read: dict = {"step": 0}
    for number, value in fields(message):
        if number == 1:
            read["wall_time"] = struct.unpack("<d", value)[0]
        elif number == 2:
            read["step"] = value
        elif number == 3:
            read["file_version"] = value.decode()
        elif number == 5:
            scalars = [dict(fields(one)) for kind, one in fields(value) if kind == 1]
            read["scalars"] = {one[1].decode(): struct.unpack("<f", one[2])[0] for one in scalars}
        else:
            raise ValueError(f"field {number}")
    return read


class TensorBoard(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        count = 192
        labels = bytes(i % 4 for i in range(count))
        pixels = array.array("B", (200 if p % 8 == 2 * label else (p * 7 + i) % 40
                                   for i, label in enumerate(labels) for p in range(64)))
        (self.folder / "images").write_bytes(idx([count, 8, 8], pixels.tobytes()))
        (self.folder / "labels").write_bytes(idx([count], labels))

    def command(self, epochs: int = 3, more: str = "") -> list[str]:
        (self.folder / "job.toml").write_text(JOB % (epochs, more))
        return [REMUDA, "train", str(self.folder / "job.toml"), "--devices", "cpu:0", "--quiet", "--json",
                str(self.folder / "report.json")]

    def event_file(self) -> pathlib.Path:
        files = list((self.folder / "runs").iterdir())
        self.assertEqual(len(files), 1)
        self.assertRegex(files[0].name, r"^events\.out\.tfevents\.\d{10}\.")
        return files[0]

    def test_holds_each_step_with_its_scalars(self):
        subprocess.run(self.command(), check=True, capture_output=True)
        events = [event(record) for record in records(self.event_file().read_bytes())]
        self.assertEqual(events[0]["file_version"], "brain.Event:2")
        self.assertLess(abs(events[0]["wall_time"] - time.time()), 3600)
        steps = [one for one in events[1:] if "loss" in one["scalars"]]
        self.assertEqual([one["step"] for one in steps], list(range(1, STEPS + 1)))
        for one in steps[:-1]:
            self.assertEqual(set(one["scalars"]),
                             {"loss", "learning_rate", "samples_per_s", "share/cpu_0", "compute_s/cpu_0",
                              "data_wait_s/cpu_0", "wait_s/cpu_0", "memory_bytes/cpu_0"})
            self.assertEqual(one["scalars"]["share/cpu_0"], 1)
            self.assertGreater(one["scalars"]["compute_s/cpu_0"], 0)
            self.assertGreater(one["scalars"]["memory_bytes/cpu_0"], 10000)
        self.assertAlmostEqual(steps[0]["scalars"]["learning_rate"], 0.05)
        self.assertLess(steps[-1]["scalars"]["learning_rate"], 0.002)
        self.assertLess(steps[-1]["scalars"]["loss"], steps[0]["scalars"]["loss"])
        tests = [one for one in events[1:] if "test_loss" in one["scalars"]]
        self.assertEqual([one["step"] for one in tests], [4, 8, 12])

    def test_of_a_run_that_was_killed_holds_all_records_that_were_written(self):
        with subprocess.Popen(self.command(epochs=100000), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                time.sleep(0.05)
                if (self.folder / "runs").exists() and self.event_file().stat().st_size > 20000:
                    break
            run.send_signal(signal.SIGKILL)
        data = self.event_file().read_bytes()
        self.assertGreater(len(data), 20000)
        events = [event(record) for record in records(data)]
        steps = [one["step"] for one in events[1:] if "loss" in one["scalars"]]
        self.assertEqual(steps[:50], list(range(1, 51)))
        self.assertEqual(len(records(data[:-1])), len(events) - 1, "what is cut off is no record")

    def test_the_reader_sees_a_flipped_bit(self):
        subprocess.run(self.command(epochs=1), check=True, capture_output=True)
        data = bytearray(self.event_file().read_bytes())
        for at in (0, 8, 14, len(data) - 1):
            data[at] ^= 1
            self.assertRaises(ValueError, records, bytes(data))
            data[at] ^= 1
        records(bytes(data))

    def test_a_folder_that_cannot_be_made_is_told_before_training(self):
        (self.folder / "runs").write_text("in the way")
        finished = subprocess.run(self.command(), capture_output=True, text=True)
        self.assertEqual(finished.returncode, 2)
        self.assertIn("output.tensorboard", finished.stderr)
        self.assertFalse((self.folder / "report.json").exists())


if __name__ == "__main__":
    REMUDA = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=sys.argv[:1])
