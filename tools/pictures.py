#!/usr/bin/env python3
"""Draws what commands print, as the pictures of the README: docs/list.svg and docs/place.svg.

pictures.py REMUDA: runs that program on the recorded machine examples/lab-server.json and writes the pictures.
pictures.py --check REMUDA: exits 1 if a picture no longer shows what the program prints.
"""

import html
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parent.parent
MACHINE = "examples/lab-server.json"
PICTURES = {
    "docs/list.svg": ["list"],
    "docs/place.svg": ["place", "-n", "2", "--mem", "24GiB", "--any-model", "--explain"],
}
COLUMN, LINE, MARGIN = 7.83, 19, 18  # of 13 px DejaVu Sans Mono and its like, in px


def printed(remuda: str, arguments: list[str]) -> list[str]:
    """The command as a user types it, and what it prints."""
    with tempfile.TemporaryDirectory() as home:  # in which nobody has a pool
        environment = {"PATH": os.environ["PATH"], "HOME": home, "NO_COLOR": "1", "COLUMNS": "118"}
        result = subprocess.run([remuda, *arguments, "--machine", MACHINE], cwd=ROOT, env=environment, check=True,
                                capture_output=True, text=True)
    return [f"$ remuda {' '.join(arguments)}", *result.stdout.rstrip("\n").split("\n")]


def picture(lines: list[str]) -> str:
    """An SVG of a terminal with these lines; the first is the command."""
    width = round(max(map(len, lines)) * COLUMN + 2 * MARGIN)
    height = len(lines) * LINE + 2 * MARGIN
    rows = []
    for number, line in enumerate(lines):
        color = "#f0f6fc" if number == 0 else "#c9d1d9"
        y = MARGIN + (number + 1) * LINE - 5
        rows.append(f'<text x="{MARGIN}" y="{y}" fill="{color}" xml:space="preserve">{html.escape(line)}</text>')
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"',
        '     font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>', *rows, "</svg>", ""])


def main() -> int:
    check = sys.argv[1:2] == ["--check"]
    remuda = str(pathlib.Path(sys.argv[1 + check]).resolve())
    stale = []
    for path, arguments in PICTURES.items():
        drawn = picture(printed(remuda, arguments))
        if check and drawn != (ROOT / path).read_text():
            stale.append(path)
        if not check:
            (ROOT / path).write_text(drawn)
    for path in stale:
        print(f"{path} no longer shows what remuda prints; run tools/pictures.py build/bin/remuda and look at it")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
