#!/usr/bin/env python3
"""The judge finds what it must find: jobs here are shell scripts that misbehave."""

import json
import os
import random
import struct
import tempfile
import unittest

import faults_checkpoints
import judge
import network
from faults import Context, Expected, judge_end
from jobs import Job
from judge import CODE, HANG, LOST, ORPHAN, UNCLEAR
from processes import Started, environment
from report import Tally

GONE = "error: rank 1, r1.compute.s1.F0: was killed by signal 9 (Killed)"


def judged(script, expected, limit=10.0):
    """Kinds of the problems of a job that is this script."""
    job = Job("processes", 2)
    job.started.append(Started("meshwright", ["sh", "-c", script], "/", environment(job.mark)))
    try:
        problems = judge_end(job, Context("sh", "", limit=limit), expected)
        return {problem.kind for problem in problems}
    finally:
        job.end()


def printing(text, code):
    return f"printf '%s\\n' '{text}' >&2; exit {code}"


def write_checkpoint(path, values=8):
    header = json.dumps(
        {"__metadata__": {"step": "1"}, "w": {"data_offsets": [0, 4 * values]}}
    ).encode()
    with open(path, "wb") as file:
        file.write(
            struct.pack("<Q", len(header)) + header + bytes(i % 255 + 1 for i in range(4 * values))
        )


class JudgeOfJobs(unittest.TestCase):
    def test_accepts_a_failure_that_is_explained(self):
        self.assertEqual(judged(printing(GONE, 1), Expected({1}, (r"rank 1\b", "signal 9"))), set())

    def test_wants_the_error_behind_all_but_the_interruptions_of_others(self):
        stopped = f"{GONE}\ninterrupted: no results written"
        self.assertEqual(judged(printing(stopped, 1), Expected({1}, (r"rank 1\b",))), set())
        self.assertEqual(judged(printing(f"{GONE}\nstep 3", 1), Expected({1})), {UNCLEAR})

    def test_finds_a_hang(self):
        self.assertEqual(judged("sleep 60", Expected(), limit=0.2), {HANG})

    def test_finds_an_orphan(self):
        self.assertEqual(
            judged("sleep 60 </dev/null >/dev/null 2>&1 & exit 0", Expected()), {ORPHAN}
        )

    def test_finds_a_failure_that_exits_with_0(self):
        self.assertEqual(judged(printing("step 1", 0), Expected({1})), {CODE})

    def test_finds_death_by_a_signal(self):
        self.assertEqual(judged("kill -SEGV $$", Expected({1, 4})), {CODE})

    def test_finds_silence(self):
        self.assertEqual(judged("exit 1", Expected({1})), {UNCLEAR})

    def test_finds_another_rank_named(self):
        self.assertEqual(judged(printing(GONE, 1), Expected({1}, (r"rank 0\b",))), {UNCLEAR})

    def test_finds_riddles(self):
        for text in (
            "error: internal error: broken invariant: a < b (mailbox.cpp:37)",
            "error: rank 1: crashed with signal 11 (Segmentation fault)",
            "error: rank 1: No such file or directory",
            "error: rank 1: ",
            "terminate called after throwing an instance",
        ):
            self.assertEqual(judged(printing(text, 1), Expected({1})), {UNCLEAR}, text)

    def test_accepts_a_system_text_with_what_was_done(self):
        text = "error: states/step-000001.safetensors: cannot write file: No space left on device"
        self.assertEqual(judged(printing(text, 4), Expected({4}, ("No space",))), set())

    def test_finds_an_interruption_that_is_not_told(self):
        self.assertEqual(judged("exit 130", Expected({130})), {UNCLEAR})
        self.assertEqual(
            judged(printing("interrupted after 3 of 5 steps", 130), Expected({130})), set()
        )

    def test_counts_a_run_once_in_a_column(self):
        tally = Tally(faults_checkpoints.KINDS)
        name = faults_checkpoints.KINDS[0].name
        tally.add(
            name, [judge.Problem(LOST, "a"), judge.Problem(LOST, "b"), judge.Problem(CODE, "c")]
        )
        tally.add(name, [])
        self.assertIn(f"| {name} | 2 | 0 | 0 | 1 | 1 | 0 |", tally.table())
        self.assertEqual(tally.failures, 1)


class JudgeOfFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for step in (1, 2):
            write_checkpoint(self.path(judge.checkpoint_name(step)))

    def path(self, name):
        return os.path.join(self.folder, name)

    def texts(self, before=None):
        return [problem.text for problem in judge.check_checkpoints(self.folder, before)]

    def test_accepts_whole_checkpoints(self):
        self.assertEqual(self.texts(before=2), [])

    def test_finds_a_lost_checkpoint(self):
        os.remove(self.path(judge.checkpoint_name(2)))
        self.assertEqual(self.texts(before=2), ["newest checkpoint was 2, now 1"])

    def test_finds_a_checkpoint_cut_anywhere(self):
        size = os.path.getsize(self.path(judge.checkpoint_name(1)))
        for length in range(size):
            write_checkpoint(self.path(judge.checkpoint_name(1)))
            os.truncate(self.path(judge.checkpoint_name(1)), length)
            self.assertEqual(len(self.texts()), 1, length)

    def test_finds_temporary_files(self):
        write_checkpoint(self.path("step-000003.safetensors.123-0.tmp"))
        self.assertEqual(len(self.texts()), 1)

    def test_knows_whole_timelines(self):
        trace = b"\x0a\x03abc" + b"\x0a\x80\x01" + bytes(128)
        self.assertEqual(judge.timeline_damage(trace), "")
        for length in (0, 1, 3, 6, 7, len(trace) - 1):
            self.assertNotEqual(judge.timeline_damage(trace[:length]), "", length)

    def test_damages_are_damages(self):
        draw = random.Random(1)
        for damage in (
            faults_checkpoints.cut,
            faults_checkpoints.flip_bits,
            faults_checkpoints.zero_block,
            faults_checkpoints.append,
        ):
            for _ in range(20):
                path = self.path("victim")
                write_checkpoint(path, values=4000)
                with open(path, "rb") as file:
                    before = file.read()
                damage(draw, path)
                with open(path, "rb") as file:
                    self.assertNotEqual(file.read(), before, damage.__name__)


class NetworkOfFaults(unittest.TestCase):
    def test_proxy_passes_and_harms(self):
        import socket

        with socket.create_server(("127.0.0.1", 0)) as server:
            proxy = network.Proxy(
                server.getsockname()[1], lambda part, passed: part.replace(b"a", b"b")
            )
            with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as near:
                far, _ = server.accept()
                with far:
                    near.sendall(b"xay")
                    self.assertEqual(far.recv(3, socket.MSG_WAITALL), b"xby")
            proxy.close()


if __name__ == "__main__":
    unittest.main()
