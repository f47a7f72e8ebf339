#!/usr/bin/env python3
"""
Runs every command of the book: `run_book.py PROGRAM [PAGE.md...]`.

The lines of each fenced `sh` block are run by bash, with PROGRAM as `meshwright`. The blocks of a page
share a temporary folder. Every block must end with exit status 0, unless the comment above it names
another one, or several if the status depends on measured times:

    <!-- exit 1 -->
    <!-- exit 0 or 1 -->

A block after it shows the output. `text`: as printed; `output`: the same lines with other figures,
since predictions improve. `…` stands for any number of lines, or for the rest of a line.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

BOOK = Path(__file__).resolve().parents[2] / "docs" / "book"
PAGES = sorted(path.name for path in BOOK.glob("*.md"))
LONGEST = 60  # seconds per block
FIGURE = re.compile(r"[-+]?\d[\d,.]*(?:e[-+]?\d+)?(?: (?:s|ms|us|ns|days|h|B|KiB|MiB|GiB|TiB)\b| %)?")


class Block(NamedTuple):
    page: str
    line: int
    kind: str
    text: str
    statuses: tuple  # expected exit statuses, of sh blocks


def blocks_of(page, text):
    """The fenced blocks of a page, in order."""
    blocks, statuses, kind, start, lines = [], (0,), None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.fullmatch(r"```(\w*)", line)
        if kind is None and fence:
            kind, start, lines = fence[1], number, []
        elif kind is not None and line == "```":
            blocks.append(Block(page, start, kind, "\n".join(lines), statuses))
            kind, statuses = None, (0,)
        elif kind is not None:
            lines.append(line)
        elif found := re.fullmatch(r"<!-- exit (\d+(?: or \d+)*) -->", line):
            statuses = tuple(int(status) for status in found[1].split(" or "))
    if kind is not None:
        raise ValueError(f"{page}:{start}: the block is not closed")
    return blocks


def normal(line, masks):
    """Spaces as one; with `masks`, figures and the rules of tables that depend on them as one word."""
    line = FIGURE.sub("#", line) if masks else line
    return " ".join(line.split())


def first_missing(shown, output, masks):
    """The first line of `shown` that `output` does not have in this order; None if it has all."""
    printed = [normal(line, masks) for line in output.splitlines()]
    place, is_free = 0, True  # is_free: lines may be skipped
    for line in shown.splitlines():
        wanted = normal(line, masks)
        if wanted == "…":
            is_free = True
            continue
        is_prefix = wanted.endswith("…")
        wanted = wanted.removesuffix("…").rstrip()
        while place < len(printed):
            found = printed[place]
            place += 1
            if found == wanted or is_prefix and found.startswith(wanted):
                break
            if not is_free and (found or wanted):
                return line
        else:
            return line
        is_free = False
    return None


def run_block(block, folder, environment):
    """The output, or an error."""
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=LONGEST, check=False, encoding="utf-8", errors="replace")
    if done.returncode not in block.statuses:
        expected = " or ".join(str(status) for status in block.statuses)
        raise RuntimeError(f"exit status {done.returncode}, expected {expected}\n{done.stdout}")
    return done.stdout


def run_page(page, text, program):
    """The number of blocks that were run, and errors with their places."""
    errors, output, count = [], None, 0
    with tempfile.TemporaryDirectory(prefix="meshwright-book-") as folder:
        tools = Path(folder, ".tools")
        tools.mkdir()
        (tools / "meshwright").symlink_to(Path(program).resolve())
        work = Path(folder, "work")
        work.mkdir()
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "HOME": folder,
                       "XDG_DATA_HOME": f"{folder}/data", "LC_ALL": "C.UTF-8"}
        environment.pop("MESHWRIGHT_CALIBRATION", None)
        for block in blocks_of(page, text):
            place = f"{page}:{block.line}"
            try:
                if block.kind == "sh":
                    output, count = None, count + 1
                    output = run_block(block, work, environment)
                elif block.kind in ("text", "output") and output is not None:
                    missing = first_missing(block.text, output, block.kind == "output")
                    if missing is not None:
                        errors.append(f"{place}: the output does not have the line '{missing}':\n{output}")
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                errors.append(f"{place}: {error}")
    return count, errors


def main(program, *pages):
    def timed(name):
        start = time.monotonic()
        blocks, errors = run_page(name, (BOOK / name).read_text(encoding="utf-8"), program)
        return name, blocks, errors, time.monotonic() - start

    errors, count = [], 0
    with ThreadPoolExecutor(2) as pool:  # pages are independent
        for name, blocks, found, seconds in pool.map(timed, pages or PAGES):
            count, errors = count + blocks, errors + found
            print(f"{name}: {blocks} blocks in {seconds:.1f} s, {len(found)} errors")
    print(*errors, sep="\n", end="\n" if errors else "")
    return 1 if errors or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
