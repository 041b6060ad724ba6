"""What makes a guest a server with cards: a machine that the stand-in for the driver plays, and device files."""
import json
import time

PATIENCE_S = 120
CARDS = 8
LIBRARY_READS = "/test/machine.json"
OPENS = """import errno, os, sys
for number in sys.argv[1:]:
    try:
        os.open(f"/dev/nvidia{number}", os.O_RDONLY)
    except OSError as error:
        print({errno.ENXIO: "opened", errno.EPERM: "denied"}.get(error.errno, error))
"""


def eventually(condition, patience_s=PATIENCE_S):
    """What the condition says once that counts as true."""
    end = time.monotonic() + patience_s
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience_s} s")
        time.sleep(0.2)
    return value


def machine():
    """Cards that are joined by nothing, each with its device file."""
    cards = [{"id": f"gpu:{number}", "kind": "gpu", "index": number, "minor": number, "vendor": "NVIDIA", "name": "Stand-in",
              "memory_bytes": 16 << 30, "pci": f"00f{number}:00:00.0", "uuid": f"GPU-{number:08x}-0000-0000-0000-000000000000",
              "status": {"processes": []}} for number in range(CARDS)]
    return {"version": 1, "host": "server", "source": "made for a test", "devices": cards, "links": []}


def furnish(guest):
    guest.write("/test/opens.py", OPENS)
    guest.write(LIBRARY_READS, json.dumps(machine()))
    guest.write("/etc/profile.d/test.sh", f"export REMUDA_TEST_NVML={LIBRARY_READS}\n")
    guest.write("/etc/systemd/system/remuda-agent.service.d/test.conf", f"[Service]\nEnvironment=REMUDA_TEST_NVML={LIBRARY_READS}\n")
    guest.write("/etc/tmpfiles.d/cards.conf", "".join(f"c /dev/nvidia{number} 0666 root root - 195:{number}\n" for number in range(CARDS)))
    guest.must("systemd-tmpfiles --create cards.conf; systemctl daemon-reload")
