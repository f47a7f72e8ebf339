"""What must hold after a fault: the checks, written without knowledge of the program's code."""

import json
import os
import re
import signal
import struct
from dataclasses import dataclass

from processes import send_signal, wait_until

HANG, ORPHAN, LOST, CODE, UNCLEAR = "hang", "orphan", "lost", "exit code", "unclear"
KINDS = (HANG, ORPHAN, LOST, CODE, UNCLEAR)

# As the README lists them.
DONE, FAILED, USAGE, INPUT, ENVIRONMENT, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
ERRORS = (FAILED, USAGE, INPUT, ENVIRONMENT, INTERNAL)

FOR_ORPHANS = 3  # seconds in which the processes of a job that has ended must be gone

# Words that say more about the code than about what happened.
RIDDLES = (
    "internal error",
    "broken invariant",
    "terminate called",
    "what()",
    "std::",
    "bad_alloc",
    "unknown exception",
    "Assertion",
    "MW_CHECK",
    "basic_string",
    "AddressSanitizer",
    "runtime error:",
    "ThreadSanitizer",
)
CRASH = re.compile(r"(crashed with|was killed by) signal (4|7|8|11) ")
SYSTEM_TEXTS = frozenset(os.strerror(number) for number in range(1, 134))


@dataclass(frozen=True)
class Problem:
    kind: str  # of KINDS
    text: str


def error_lines(errors):
    """Texts after "error: ", in lines that may begin with the remains of a progress line."""
    return re.findall(r"(?:^|\r|\n)error: ([^\n]*)", errors)


def check_end(job, limit):
    """The job ends within `limit` seconds; otherwise it is killed."""
    if job.wait(limit):
        return []
    running = [process.name for process in job.started if not process.has_ended()]
    states = ", ".join(f"{p.pid} {p.state}" for p in job.processes())
    job.end()
    return [
        Problem(
            HANG, f"{' and '.join(running)} still running after {limit:g} s (processes: {states})"
        )
    ]


def check_orphans(job, ignored=()):
    """No process is left. Those that the fault has stopped are `ignored`: nothing but a kill ends them."""
    left = []

    def are_gone():
        left[:] = [p for p in job.processes() if p.pid not in ignored]
        return not left

    if wait_until(are_gone, FOR_ORPHANS):
        return []
    text = ", ".join(f"{p.pid} in state {p.state}" for p in left)
    for process in left:
        send_signal(process.pid, signal.SIGKILL)
    return [Problem(ORPHAN, f"{len(left)} left after {FOR_ORPHANS} s: {text}")]


def check_code(process, allowed):
    if process.code in allowed:
        return []
    expected = (
        " or ".join(str(code) for code in sorted(allowed)) if len(allowed) < 9 else "a failure"
    )
    return [Problem(CODE, f"{process.name}: {process.code}, expected {expected}")]


def is_bare(error):
    """A text of the system without a word on what was done: "rank 1: No such file or directory"."""
    cause = error.rpartition(": ")[2]
    rest = error[: -len(cause)].rstrip(": ")
    return not cause or (cause in SYSTEM_TEXTS and " " not in re.sub(r"^rank \d+\b", "rank", rest))


def last_line(errors):
    """Without those of ranks, and of their processes, that were interrupted since another failed."""
    return next(
        line
        for line in reversed(errors.splitlines())
        if not re.fullmatch(r"rank \d+: interrupted|interrupted: no results written", line)
    )


def check_message(process, code=None, mentions=()):
    """The last lines say what happened; after errors with each of `mentions`, regular expressions."""
    text, errors = process.errors, error_lines(process.errors)
    code = process.code if code is None else code

    def unclear(what):
        return Problem(UNCLEAR, f"{process.name}: {what}")

    problems = [unclear(f"says '{word}'") for word in RIDDLES if word in text]
    if CRASH.search(text):
        problems.append(unclear(f"tells a crash: {CRASH.search(text).group()}"))
    if "memory runs out" in text and "signal 9 " not in text:
        problems.append(unclear("a hint on memory without a kill"))
    problems += [
        unclear(f"bare text of the system: '{error}'") for error in errors if is_bare(error)
    ]
    if code in ERRORS:
        if not errors:
            problems.append(unclear("no error message"))
        elif not last_line(text).startswith(("error: ", "  hint: ")):
            problems.append(unclear(f"the last line is '{last_line(text)[:100]}'"))
        everything = "\n".join(errors)
        for pattern in mentions if errors else ():
            if not re.search(pattern, everything):
                problems.append(unclear(f"does not mention '{pattern}': {everything[:300]}"))
    if code == INTERRUPTED and "interrupted" not in text + process.output:
        problems.append(unclear("does not say that it was interrupted"))
    if code == DONE and errors:
        problems.append(unclear(f"succeeds, but prints '{errors[-1]}'"))
    return problems


# ---- files ---------------------------------------------------------------------------------------


def checkpoint_damage(path):
    """Why the file is no complete checkpoint, by its header; its values are checked by --resume."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        first = file.read(8)
        if len(first) < 8:
            return f"{size} bytes"
        (length,) = struct.unpack("<Q", first)
        if 8 + length > size:
            return f"header of {length} bytes in a file of {size}"
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            return f"header: {error}"
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    expected = 8 + length + max(ends, default=0)
    return "" if size == expected else f"{size} bytes, expected {expected}"


def checkpoints(folder):
    """Steps of the checkpoints with a final name, in order."""
    names = (re.fullmatch(r"step-(\d+)\.safetensors", name) for name in os.listdir(folder))
    return sorted(int(name.group(1)) for name in names if name)


def checkpoint_name(step):
    return f"step-{step:06}.safetensors"


def check_checkpoints(folder, newest_before=None, may_leave_temporaries=False):
    """All are complete, and none is older than the newest one before the fault."""
    steps = checkpoints(folder)
    problems = []
    for step in steps:
        if damage := checkpoint_damage(os.path.join(folder, checkpoint_name(step))):
            problems.append(Problem(LOST, f"{checkpoint_name(step)}: {damage}"))
    if newest_before is not None and (not steps or steps[-1] < newest_before):
        newest = steps[-1] if steps else "none"
        problems.append(Problem(LOST, f"newest checkpoint was {newest_before}, now {newest}"))
    left = [name for name in os.listdir(folder) if name.endswith(".tmp")]
    if left and not may_leave_temporaries:
        problems.append(Problem(LOST, f"temporary files are left: {', '.join(sorted(left))}"))
    return problems


def check_resume(room, arguments, step):
    """A run with these arguments resumes from the folder of checkpoints, at this step."""
    run = room.run([*arguments, "--resume", "states", "--steps", "1"])
    if run.code == DONE and f"resuming at step {step}\n" in run.errors:
        return []
    return [
        Problem(LOST, f"cannot resume at step {step}: exit code {run.code}, {run.errors[-300:]!r}")
    ]


def timeline_damage(content):
    """Why the bytes are no Perfetto trace: fields 1 of packets, each with its length."""
    position, packets = 0, 0
    while position < len(content):
        if content[position] != 0x0A:
            return f"no packet at byte {position}"
        position, length, shift = position + 1, 0, 0
        while True:
            if position >= len(content):
                return "ends inside of a length"
            byte = content[position]
            position, length, shift = position + 1, length | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                break
        position, packets = position + length, packets + 1
    return "" if position == len(content) and packets else f"ends inside of packet {packets}"


def check_timeline(path, old, must_be_new=False):
    """The file is the old one or a complete new one."""
    if not os.path.exists(path):
        return [Problem(LOST, "the timeline of the earlier run is gone")]
    with open(path, "rb") as file:
        content = file.read()
    if content == old:
        return [Problem(LOST, "the timeline was not written")] if must_be_new else []
    damage = timeline_damage(content)
    return [Problem(LOST, f"timeline: {damage}")] if damage else []
