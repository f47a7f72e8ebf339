"""Training runs of a tiny model, as users start them."""

import json
import os
import shlex
import shutil
import socket
import subprocess
import time
import uuid
from dataclasses import dataclass, field

from processes import Started, environment, kill_marked, marked_processes, open_files, wait_until

# How ranks run: threads and forked processes of one program, copies that the program starts,
# processes of a launcher (this program, in the place of torchrun), processes of mpirun.
KINDS = ("threads", "processes", "copies", "launcher", "mpi")

PLANS = (
    (2, "--pp 2"),
    (2, "--dp 2"),
    (2, "--tp 2"),
    (2, "--dp 2 --zero 1"),
    (2, "--dp 2 --zero 3"),
    (2, "--pp 2 --schedule zb-h1"),
    (3, "--dp 3"),
    (4, "--pp 2 --dp 2"),
)
FOREVER = 100_000  # steps: the most that one run makes
FOR_START = 20  # seconds until the first step is computed
OLD_TIMELINE = b"a timeline of an earlier run\n"


def write_model(path, width=32, layers=2):
    config = {
        "model_type": "gpt2",
        "n_embd": width,
        "n_head": 4,
        "n_layer": layers,
        "n_positions": 64,
        "vocab_size": 256,
        "resid_pdrop": 0,
        "attn_pdrop": 0,
        "embd_pdrop": 0,
    }
    with open(path, "w") as file:
        json.dump(config, file)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Job:
    kind: str
    ranks: int
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    started: list = field(default_factory=list)

    @property
    def main(self):
        return self.started[0]

    @property
    def errors(self):
        return "".join(process.errors for process in self.started)

    def processes(self):
        return marked_processes(self.mark)

    def process_of(self, rank):
        """Process ID of a rank; None: not there yet, or not a process of its own."""
        if self.kind == "threads":
            return None
        if self.kind == "launcher":
            return next((p.pid for p in self.started if p.name == f"rank {rank}"), None)
        if self.kind == "processes":
            forked = [p.pid for p in self.processes() if p.parent == self.main.pid]
            return forked[rank] if len(forked) == self.ranks else None
        variable = "RANK" if self.kind == "copies" else "OMPI_COMM_WORLD_RANK"
        own = [p for p in self.processes() if p.variables.get(variable) == str(rank)]
        return own[-1].pid if own else None  # under mpirun the last one computes

    def has_ended(self):
        return all(process.has_ended() for process in self.started)

    def wait(self, limit):
        return wait_until(self.has_ended, limit)

    def is_training(self):
        return "\nstep " in self.errors

    def is_saving(self):
        return any("/states/" in target for p in self.processes() for target in open_files(p.pid))

    def reach(self, moment, draw):
        """Waits for a moment of the run: start, training or save."""
        if moment == "start":
            wait_until(self.has_ended, draw.uniform(0, draw.choice((0.02, 0.3))))
            return
        wait_until(lambda: self.is_training() or self.has_ended(), FOR_START)
        if moment == "save":
            wait_until(lambda: self.is_saving() or self.has_ended(), 5)
        else:
            wait_until(self.has_ended, draw.uniform(0, 0.4))

    def signal(self, number):
        """To all processes that were started, as launchers do."""
        for process in self.started:
            process.signal(number)

    def end(self):
        """Kills what is left."""
        kill_marked(self.mark)
        self.wait(5)
        for process in self.started:
            process.finish_reading()


class Room:
    """A folder with a model, in which the jobs of one fault run."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.jobs = []
        os.makedirs(folder)
        write_model(self.path("config.json"))
        os.makedirs(self.path("states"))
        with open(self.path("out.pftrace"), "wb") as file:
            file.write(OLD_TIMELINE)

    def path(self, name):
        return os.path.join(self.folder, name)

    def arguments(self, plan, ranks, more="", model="config.json"):
        text = f"run --model {model} --cluster cpu-laptop --dtype fp32 --gpus {ranks} {plan}"
        return shlex.split(f"{text} --global-batch 12 --seq 16 {more}")

    def start(self, kind, ranks, arguments, wrapper=(), unread=(), pause=0, **variables):
        """Starts a job of ranks of this kind; `wrapper` is put in front of the command. A launcher
        pauses for so many seconds between two ranks."""
        job = Job(kind, ranks)
        self.jobs.append(job)
        command = [*wrapper, self.program, *arguments]
        if kind == "launcher":
            meeting = {
                "WORLD_SIZE": str(ranks),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(free_port()),
            }
            for rank in range(ranks):
                time.sleep(pause if rank > 0 else 0)
                self.start_rank(job, rank, command, **{**meeting, **variables})
            return job
        name = "meshwright"
        command += ["--ranks", {"copies": "job"}.get(kind, kind)]
        if kind == "mpi":
            name = "mpirun"
            command = [*mpirun_command(ranks), *command]
            variables = {**MPI_VARIABLES, **variables}
        job.started.append(
            Started(name, command, self.folder, environment(job.mark, **variables), unread)
        )
        return job

    def start_rank(self, job, rank, command, **variables):
        own = {"RANK": str(rank), "MESHWRIGHT_JOB_SECRET": job.mark, **variables}
        job.started.append(
            Started(
                f"rank {rank}",
                [*command, "--ranks", "job"],
                self.folder,
                environment(job.mark, **own),
            )
        )

    def run(self, arguments, limit=60):
        """Runs the program with ranks as threads to its end."""
        job = self.start("threads", 1, arguments)
        job.wait(limit)
        job.end()
        self.jobs.remove(job)
        return job.main

    def close(self):
        for job in self.jobs:
            job.end()


# OpenMPI refuses root and more processes than cores, unless told; copies between processes need
# rights of ptrace.
MPI_VARIABLES = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}


def mpirun_command(ranks):
    mpirun = shutil.which("mpirun.openmpi") or "mpirun"
    return [mpirun, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", str(ranks)]


def missing_for_mpi(program):
    """Why jobs of mpirun cannot run here; empty: they can."""
    if not shutil.which("mpirun.openmpi") and not shutil.which("mpirun"):
        return "mpirun is not installed"
    arguments = "run --model gpt2 --cluster cpu-laptop --gpus 1 --dtype fp32 --global-batch 1 --seq 8 --ranks mpi"
    probe = subprocess.run([program, *arguments.split()], capture_output=True, text=True)
    return "the program was built without MPI" if "without MPI" in probe.stderr else ""


def draw_kind(draw, kinds=KINDS):
    weights = {"threads": 1, "processes": 3, "copies": 3, "launcher": 4, "mpi": 3}
    return draw.choices(kinds, [weights[kind] for kind in kinds])[0]


def draw_plan(draw):
    """(ranks, options)"""
    return draw.choice(PLANS)
