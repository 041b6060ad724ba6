#!/usr/bin/python3
"""Checks remuda's output against docs/inventory.schema.json: for the live machine, and for every recorded one.

inventory_schema_test.py REMUDA ROOT
"""

import json
import pathlib
import subprocess
import sys
import unittest

import jsonschema

REMUDA, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
SCHEMA = json.loads((ROOT / "docs/inventory.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def closed(schema):
    """The schema, made strict: objects may have only the fields it names."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: closed(part) for key, part in schema.items()}
    if "properties" in strict:
        strict["additionalProperties"] = False
    return strict


STRICT = jsonschema.Draft202012Validator(closed(SCHEMA))


def listed(*arguments: str):
    return json.loads(subprocess.run([REMUDA, "list", "--json", *arguments], check=True, capture_output=True).stdout)


class InventorySchema(unittest.TestCase):
    def test_is_a_schema(self):
        VALIDATOR.check_schema(SCHEMA)

    def test_describes_the_live_machine_to_the_last_field(self):
        STRICT.validate(listed())

    def test_describes_every_recorded_machine_to_the_last_field(self):
        machines = sorted((ROOT / "testdata/machines").glob("*.json"))
        self.assertGreaterEqual(len(machines), 30)
        for machine in machines:
            with self.subTest(machine=machine.name):
                STRICT.validate(listed("--machine", str(machine)))

    def test_refuses_what_is_no_inventory(self):
        device = {"id": "gpu:0", "kind": "gpu", "index": 0}
        inventory = {"version": 1, "host": "lab", "devices": [device]}
        VALIDATOR.validate(inventory)
        for wrong in ({"host": "lab", "devices": []}, {**inventory, "devices": [{**device, "kind": "fpga"}]},
                      {**inventory, "devices": [{**device, "memory_bytes": "much"}]},
                      {**inventory, "devices": [{**device, "numa_node": {"missing": "asleep", "detail": ""}}]}):
            with self.assertRaises(jsonschema.ValidationError):
                VALIDATOR.validate(wrong)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
