"""What a call prints and keeps: progress, a table of all kinds, and a folder for each failure."""

import os
import shlex
import shutil
import sys
import time
from collections import Counter

import judge

TITLES = {
    judge.HANG: "hangs",
    judge.ORPHAN: "orphans",
    judge.LOST: "lost files",
    judge.CODE: "wrong exit codes",
    judge.UNCLEAR: "unclear messages",
}
LARGEST_KEPT = 1 << 20  # bytes of a file


class Tally:
    """Counts by kind of fault."""

    def __init__(self, kinds):
        self._names = [kind.name for kind in kinds]
        self.runs = Counter()
        self._problems = {name: Counter() for name in self._names}
        self.skipped = {}  # kind: reason
        self.failures = 0

    def add(self, name, problems):
        self.runs[name] += 1
        self.failures += bool(problems)
        for kind in {problem.kind for problem in problems}:  # a run counts once in a column
            self._problems[name][kind] += 1

    def table(self):
        lines = [
            "| fault | runs | " + " | ".join(TITLES.values()) + " |",
            "|---|" + "---:|" * (1 + len(TITLES)),
        ]
        total = Counter()
        for name in self._names:
            if self.runs[name]:
                total += self._problems[name]
                lines.append(self._row(name, self.runs[name], self._problems[name]))
        lines.append(self._row("all", sum(self.runs.values()), total))
        return "\n".join(lines)

    @staticmethod
    def _row(name, runs, problems):
        return f"| {name} | {runs} | " + " | ".join(str(problems[kind]) for kind in TITLES) + " |"

    def skipped_text(self):
        return "".join(
            f"skipped: {name}: {reason}\n" for name, reason in sorted(self.skipped.items())
        )


class Progress:
    """One line that is rewritten on a terminal; elsewhere a line every 15 seconds."""

    def __init__(self):
        self._begin, self._next, self._is_terminal = time.monotonic(), 0, sys.stderr.isatty()

    def show(self, tally, name):
        text = f"chaos: {sum(tally.runs.values())} faults, {tally.failures} failures, now: {name}"
        passed = time.monotonic() - self._begin
        if self._is_terminal:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        elif passed >= self._next:
            print(f"{text} ({passed:.0f} s)", file=sys.stderr, flush=True)
            self._next = passed + 15

    def say(self, text):
        print(("\r\033[K" if self._is_terminal else "") + text, file=sys.stderr, flush=True)


def command_text(process):
    """As it can be pasted into a shell, with the variables of the launcher."""
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "MESHWRIGHT_JOB_SECRET")
    variables = [
        f"{name}={shlex.quote(process.variables[name])}"
        for name in names
        if name in process.variables
    ]
    return " ".join([*variables, shlex.join(process.command)])


def keep_failure(folder, room, text, problems):
    """Copies the files of the room, without large ones, next to commands, output and problems."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "problems.txt"), "w") as file:
        file.write(text + "\n" + "".join(f"{p.kind}: {p.text}\n" for p in problems))
    with open(os.path.join(folder, "output.txt"), "w") as file:
        for process in (process for job in room.jobs for process in job.started):
            file.write(f"==== {process.name}: exit code {process.code}\n{command_text(process)}\n")
            file.write(f"-- standard error\n{shortened(process.errors)}\n")
            file.write(f"-- standard output\n{shortened(process.output)}\n")

    def large(parent, names):
        return [name for name in names if is_large(os.path.join(parent, name))]

    shutil.copytree(room.folder, os.path.join(folder, "files"), ignore=large)


def is_large(path):
    return not os.path.isdir(path) and (
        not os.path.isfile(path) or os.path.getsize(path) > LARGEST_KEPT
    )


def shortened(text):
    half = 10_000
    return text if len(text) <= 2 * half else f"{text[:half]}\n[...]\n{text[-half:]}"
