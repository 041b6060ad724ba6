#!/usr/bin/env python3
"""Tests of gpu.py: what counts as a difference."""

import unittest

import gpu

ROW = "GPU-1, A GPU, 81920, 1000, 40, 70.11, 400.00, 4, 16, 1410, 8.0"


def device(**changes) -> dict:
    reading = {"kind": "gpu", "uuid": "GPU-1", "model": "A GPU", "memory_bytes": 81920 * 2**20,
               "power_limit_watts": 400.0, "pcie_generation_max": 4, "pcie_width_max": 16, "sm_clock_max_mhz": 1410,
               "compute_capability": "8.0",
               "status": {"memory_used_bytes": 1200 * 2**20, "temperature_c": 42, "power_watts": 75.0}}
    return reading | changes


def differences(row: str = ROW, **changes) -> list[str]:
    return gpu.differences(row, {"devices": [{"kind": "cpu"}, device(**changes)]})


class Differences(unittest.TestCase):
    def test_none_where_readings_are_near(self):
        self.assertEqual(differences(), [])

    def test_of_identity_and_capacity(self):
        self.assertEqual(len(differences(model="Another")), 1)
        self.assertEqual(len(differences(memory_bytes=40960 * 2**20)), 1)

    def test_a_reading_that_only_one_has(self):
        self.assertEqual(len(differences(power_limit_watts={"missing": "denied", "detail": "no"})), 1)
        self.assertEqual(len(differences(ROW.replace("400.00", "[N/A]"))), 1)
        missing = {"missing": "unsupported", "detail": "no"}
        self.assertEqual(differences(ROW.replace("400.00", "[N/A]"), power_limit_watts=missing), [])

    def test_a_reading_with_a_time_of_its_own(self):
        self.assertEqual(differences(power_limit_watts={"value": 400.0, "time_s": 1}), [])

    def test_a_gpu_that_is_not_listed(self):
        self.assertEqual(differences("GPU-2" + ROW[5:]), ["GPU-2 is missing from remuda's list"])


if __name__ == "__main__":
    unittest.main()
