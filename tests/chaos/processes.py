"""Starts processes, collects their output, and finds all that descend from them.

Every process of a job inherits a variable with the mark of the job, by which it is found in /proc.
"""

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass

VARIABLE = "MESHWRIGHT_CHAOS"
POLL = 0.005  # seconds

# Variables of launchers, from whatever started this program.
FOREIGN = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_",
    "MASTER_",
    "OMPI_",
    "PMI",
    "SLURM_",
    "TORCHELASTIC_",
    "MESHWRIGHT_",
)


def environment(mark, **more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**clean, VARIABLE: mark, **more}


def wait_until(condition, limit):
    """True once the condition holds, false if it does not within `limit` seconds."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL)
    return True


class Started:
    """A process that a user starts, with what it has written so far."""

    def __init__(self, name, command, folder, variables, unread=()):
        """`unread`: streams ("stdout", "stderr") whose reading end is closed at once."""
        self.name, self.command, self.variables = name, command, variables
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.pid = self.process.pid
        self._text = {"stdout": bytearray(), "stderr": bytearray()}
        self._readers = []
        for stream in self._text:
            pipe = getattr(self.process, stream)
            if stream in unread:
                pipe.close()
                continue
            reader = threading.Thread(
                target=self._read, args=(pipe, self._text[stream]), daemon=True
            )
            reader.start()
            self._readers.append(reader)

    @staticmethod
    def _read(pipe, text):
        while part := os.read(pipe.fileno(), 1 << 16):
            text += part
        pipe.close()

    @property
    def output(self):
        return self._text["stdout"].decode(errors="replace")

    @property
    def errors(self):
        return self._text["stderr"].decode(errors="replace")

    def has_ended(self):
        return self.process.poll() is not None

    @property
    def code(self):
        """Exit code; negative: number of the signal; None: still running."""
        return self.process.poll()

    def finish_reading(self):
        """To be called once no process can write any more."""
        for reader in self._readers:
            reader.join(timeout=2)

    def signal(self, number):
        if not self.has_ended():
            self.process.send_signal(number)


@dataclass
class Process:
    pid: int
    parent: int
    state: str  # R, S, D, T (stopped), ...
    variables: dict


def _process(pid, mark):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            content = file.read()
        if f"{VARIABLE}={mark}".encode() not in content.split(b"\0"):
            return None
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent = file.read().rpartition(b") ")[2].split()[:2]
    except OSError:  # it has ended, or belongs to another user
        return None
    pairs = (entry.partition(b"=") for entry in content.split(b"\0"))
    variables = {
        key.decode(errors="replace"): value.decode(errors="replace") for key, _, value in pairs
    }
    return Process(pid, int(parent), state.decode(), variables)


def marked_processes(mark):
    """All running processes with this mark, by process ID."""
    found = (_process(int(name), mark) for name in os.listdir("/proc") if name.isdigit())
    return sorted((p for p in found if p and p.state not in "ZX"), key=lambda p: p.pid)


def send_signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has just ended


def kill_marked(mark):
    for process in marked_processes(mark):
        send_signal(process.pid, signal.SIGKILL)


def open_files(pid):
    """Targets of the descriptors of a process."""
    targets = []
    try:
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            targets.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    except OSError:
        pass
    return targets
