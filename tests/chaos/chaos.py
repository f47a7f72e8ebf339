#!/usr/bin/env python3
"""Runs training under faults, one after the other, and judges how each run ends.

The faults are drawn from a seed: kills and signals, full and slow disks, limits, strangers and bad
connections, damaged checkpoints and input files. Moments vary with the speed of the machine.
Exit code: 0 no failure, 1 failures, 2 usage error.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import faults_checkpoints
import faults_disks
import faults_inputs
import faults_limits
import faults_network
import faults_signals
from faults import Context, Skipped
from jobs import KINDS as KINDS_OF_RANKS
from jobs import Room, missing_for_mpi
from report import Progress, Tally, keep_failure

MODULES = (
    faults_signals,
    faults_disks,
    faults_limits,
    faults_network,
    faults_checkpoints,
    faults_inputs,
)
IN_NAMESPACE = "CHAOS_IN_NAMESPACE"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", metavar="FILE", required=True, help="the program meshwright")
    parser.add_argument(
        "minutes", metavar="MINUTES", nargs="?", type=float, help="time to run (default: 10)"
    )
    parser.add_argument(
        "--faults", metavar="N", type=int, help="number of faults, instead of a time"
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, help="seed of the faults (default: random)"
    )
    parser.add_argument("--only", metavar="I", type=int, help="make only fault I of the seed")
    parser.add_argument(
        "--kinds", metavar="TEXT", action="append", help="only kinds with this text; repeatable"
    )
    parser.add_argument(
        "--without", metavar="TEXT", action="append", default=[], help="no kinds with this text"
    )
    parser.add_argument(
        "--each", action="store_true", help="as many faults of each kind, instead of by weight"
    )
    parser.add_argument(
        "--limit", metavar="S", type=float, default=30, help="seconds of a hang (default: 30)"
    )
    parser.add_argument(
        "--folder", metavar="FOLDER", help="folder for failures (default: a temporary one)"
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep files and output of all faults, not of failures only",
    )
    parser.add_argument("--list", action="store_true", help="list the kinds of faults, and exit")
    return parser.parse_args()


def chosen_kinds(options):
    def has_any(name, texts):
        return any(text in name for text in texts)

    every = [kind for module in MODULES for kind in module.KINDS]
    kept = [kind for kind in every if not options.kinds or has_any(kind.name, options.kinds)]
    kept = [kind for kind in kept if not has_any(kind.name, options.without)]
    if not kept:
        sys.exit("chaos: error: no kind of faults with this text; see --list")
    return kept


def enter_namespace():
    """Starts this program again where mounts are its own, if that is permitted."""
    if IN_NAMESPACE in os.environ or not shutil.which("unshare"):
        return
    for how in (["--mount"], ["--user", "--map-root-user", "--mount"]):
        command = ["unshare", *how, "--propagation", "private"]
        if subprocess.run([*command, "true"], capture_output=True).returncode == 0:
            os.environ[IN_NAMESPACE] = "1"
            os.execvp(command[0], [*command, sys.executable, *sys.argv])


def context_for(options, folder):
    missing = missing_for_mpi(options.program)
    return Context(
        program=options.program,
        folder=folder,
        limit=options.limit,
        is_private=IN_NAMESPACE in os.environ,
        kinds_of_ranks=tuple(kind for kind in KINDS_OF_RANKS if kind != "mpi" or not missing),
        missing_for_mpi=missing,
    )


class Chaos:
    def __init__(self, options, kinds, folder):
        self.options, self.kinds = options, kinds
        self.failures = options.folder or os.path.join(tempfile.gettempdir(), "meshwright-chaos")
        self.folder = folder
        self.context = context_for(options, folder)
        self.tally, self.progress = Tally(kinds), Progress()

    def make(self, index):
        """Makes fault `index` of the seed, which does not depend on those before it."""
        seed = f"{self.options.seed}/{index}"
        choice = random.Random(seed)
        while True:
            kind = self.choose(index, choice)
            if kind is None:
                return
            self.progress.show(self.tally, kind.name)
            try:
                return self.judge(index, kind, random.Random(f"{seed}/{kind.name}"))
            except Skipped as reason:
                self.tally.skipped[kind.name] = str(reason)

    def choose(self, index, choice):
        """None: there is none for this index."""
        if self.options.each:
            kind = self.kinds[index % len(self.kinds)]
            return None if kind.name in self.tally.skipped else kind
        possible = [kind for kind in self.kinds if kind.name not in self.tally.skipped]
        while possible:
            kind = choice.choices(self.kinds, [kind.weight for kind in self.kinds])[0]
            if kind in possible:
                return kind
        sys.exit(f"chaos: error: no fault can be made here\n{self.tally.skipped_text()}")

    def judge(self, index, kind, draw):
        room = Room(self.options.program, os.path.join(self.folder, f"fault-{index}"))
        try:
            problems = kind.make(draw, room, self.context)
            room.close()
            self.tally.add(kind.name, problems)
            if problems or self.options.keep:
                self.tell(index, kind, room, problems)
        finally:
            room.close()
            shutil.rmtree(room.folder, ignore_errors=True)

    def tell(self, index, kind, room, problems):
        text = f"fault {index}: --seed {self.options.seed} --only {index} --kinds '{kind.name}'"
        kept = os.path.join(self.failures, f"seed-{self.options.seed}", f"fault-{index}")
        keep_failure(kept, room, text, problems)
        verdict = "FAILED" if problems else "passed"
        self.progress.say(
            f"{verdict}: {text}\n"
            + "".join(f"  {p.kind}: {p.text}\n" for p in problems)
            + f"  {kept}"
        )

    def run(self):
        options = self.options
        if options.only is not None:
            return self.make(options.only)
        minutes = options.minutes or 10
        end = time.monotonic() + 60 * minutes
        index = 0
        while index < options.faults if options.faults else time.monotonic() < end:
            self.make(index)
            index += 1


def main():
    options = parse_arguments()
    kinds = chosen_kinds(options)
    if options.list:
        print("\n".join(kind.name for kind in kinds))
        return
    options.program = os.path.abspath(options.program)
    if options.seed is None:
        options.seed = int(
            os.environ.setdefault("CHAOS_SEED", str(random.SystemRandom().randrange(1_000_000)))
        )
    enter_namespace()
    # Also where they are ignored, as of nohup: the programs would inherit that.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    print(f"chaos: seed {options.seed}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="meshwright-chaos-") as folder:
        chaos = Chaos(options, kinds, folder)
        try:
            chaos.run()
        except KeyboardInterrupt:
            chaos.progress.say("chaos: interrupted")
    print(chaos.tally.table())
    print(chaos.tally.skipped_text(), end="", file=sys.stderr)
    sys.exit(1 if chaos.tally.failures else 0)


if __name__ == "__main__":
    main()
