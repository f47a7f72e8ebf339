"""Disks that are full, read-only or slow, in a mount namespace of this program."""

import os
import shutil
import signal
import subprocess
import threading
import time

import judge
from faults import Expected, Kind, Skipped, judge_checkpoints, judge_end, newest_checkpoint
from jobs import FOREVER, OLD_TIMELINE, draw_kind, draw_plan, write_model
from judge import DONE, ENVIRONMENT, FAILED, INTERRUPTED
from processes import wait_until

OWN = ("threads", "processes", "copies", "launcher")


class Mounted:
    """A file system on a folder, as long as the object is used in `with`."""

    def __init__(self, context, folder, *arguments):
        if not context.is_private:
            raise Skipped("no private mount namespace (unshare --mount)")
        self.folder = folder
        done = subprocess.run(["mount", *arguments, folder], capture_output=True, text=True)
        if done.returncode != 0:
            raise Skipped(f"cannot mount: {done.stderr.strip()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while subprocess.run(["umount", self.folder], capture_output=True).returncode == 32:
            time.sleep(0.1)  # a killed process still holds it

    def make_read_only(self):
        """True once no file is open for writing."""
        command = ["mount", "-o", "remount,ro", self.folder]
        return wait_until(lambda: subprocess.run(command, capture_output=True).returncode == 0, 5)


def tmpfs(context, folder, size):
    return Mounted(context, folder, "-t", "tmpfs", "-o", f"size={size}", "tmpfs")


def start(draw, room, kind, more):
    ranks, plan = draw_plan(draw)
    arguments = room.arguments(plan, ranks)
    return room.start(kind, ranks, [*arguments, *more.split()]), arguments


def for_job(job, codes, mentions):
    """The others end with the rank that fails."""
    return {process.name: Expected(codes, mentions) for process in job.started}


def full_for_checkpoints(draw, room, context):
    """Of 9 files of some 330 kB each, as many fit as the disk is large."""
    size = draw.choice((0, 4096, 100_000, 400_000, 1_000_000, 2_000_000)) + 4096
    with tmpfs(context, room.path("states"), size):
        keep = draw.choice(("", "", "--keep 1"))
        more = f"--steps 9 --save states --save-every 1 {keep}"
        job, arguments = start(draw, room, draw_kind(draw, OWN), more)
        problems = judge_end(
            job, context, for_job(job, {DONE, FAILED, ENVIRONMENT}, ("No space left on device",))
        )
        if not keep and job.main.code == DONE and len(judge.checkpoints(room.path("states"))) != 9:
            problems.append(judge.Problem(judge.LOST, "succeeds without all checkpoints"))
        return problems + judge_checkpoints(room, arguments, None)


def full_for_output(draw, room, context):
    option, name = draw.choice(
        (("-o", "out.pftrace"), ("--log", "run.jsonl"), ("--live -o", "out.pftrace"))
    )
    with tmpfs(context, room.path("states"), draw.choice((4096, 8192, 65_536))):
        if draw.random() < 0.5:
            with open(room.path(f"states/{name}"), "wb") as file:
                file.write(OLD_TIMELINE if name == "out.pftrace" else b"")
        more = f"--steps 200 {option} states/{name}"
        job, _ = start(draw, room, draw_kind(draw, OWN), more)
        problems = judge_end(
            job, context, for_job(job, {DONE, FAILED, ENVIRONMENT}, ("No space left on device",))
        )
        if name == "out.pftrace" and os.path.exists(room.path(f"states/{name}")):
            problems += judge.check_timeline(
                room.path(f"states/{name}"), OLD_TIMELINE, job.main.code == DONE
            )
        return problems + judge.check_checkpoints(room.path("states"))


def read_only(draw, room, context):
    """From the beginning, or after some checkpoints."""
    with tmpfs(context, room.path("states"), 20_000_000) as disk:
        is_late = draw.random() < 0.7
        if not is_late:
            disk.make_read_only()
        job, arguments = start(
            draw,
            room,
            draw_kind(draw, OWN),
            f"--steps {FOREVER} --save states --save-every 1 --keep 2",
        )
        if is_late:
            wait_until(lambda: newest_checkpoint(room) or job.has_ended(), 20)
            if not disk.make_read_only():
                raise Skipped("the disk cannot be made read-only while it is written")
        before = newest_checkpoint(room)
        expected = for_job(
            job, {FAILED, ENVIRONMENT}, ("Read-only file system|cannot write to directory",)
        )
        problems = judge_end(job, context, expected)
        return problems + judge_checkpoints(room, arguments, before, may_leave_temporaries=True)


def slow(draw, room, context):
    """All writes wait for a while, in which nothing is declared hung; then the run goes on."""
    if not shutil.which("mkfs.ext4") or not shutil.which("fsfreeze"):
        raise Skipped("mkfs.ext4 or fsfreeze is not installed")
    image = room.path("disk")
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    subprocess.run(
        ["mkfs.ext4", "-q", "-O", "^has_journal", image], check=True, capture_output=True
    )
    with Mounted(context, room.path("states"), "-o", "loop", image):
        write_model(room.path("config.json"), width=64)
        is_interrupted = draw.random() < 0.3
        steps = FOREVER if is_interrupted else 30
        more = f"--steps {steps} --save states --save-every 1 --keep 2 --patience 2s"
        job, arguments = start(draw, room, draw_kind(draw, OWN), more)
        wait_until(lambda: newest_checkpoint(room) or job.has_ended(), 20)
        time.sleep(draw.uniform(0, 0.2))
        freeze(room.path("states"), draw.uniform(0.5, 6), job if is_interrupted else None)
        codes = {INTERRUPTED} if is_interrupted else {DONE}
        problems = judge_end(job, context, for_job(job, codes, ()))
        return problems + judge_checkpoints(room, arguments, newest_checkpoint(room))


def freeze(folder, seconds, interrupted):
    frozen = subprocess.run(["fsfreeze", "--freeze", folder], capture_output=True, text=True)
    if frozen.returncode != 0:
        raise Skipped(f"cannot freeze a file system: {frozen.stderr.strip()}")
    thaw = threading.Timer(seconds, subprocess.run, [["fsfreeze", "--unfreeze", folder]])
    thaw.start()
    if interrupted:
        time.sleep(seconds / 2)
        interrupted.signal(signal.SIGTERM)
    thaw.join()


KINDS = [
    Kind("disk full: checkpoints", 5, full_for_checkpoints),
    Kind("disk full: timeline or log", 3, full_for_output),
    Kind("disk read-only", 3, read_only),
    Kind("disk slow", 3, slow),
]
