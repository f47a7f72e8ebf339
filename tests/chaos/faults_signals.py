"""Signals to ranks, to the program that started them, and to mpirun, at random moments of a run."""

import re
import signal
import time
from dataclasses import dataclass, field

import judge
from faults import Expected, Kind, Skipped, judge_checkpoints, judge_end, newest_checkpoint
from jobs import FOREVER, OLD_TIMELINE, draw_kind, draw_plan, write_model
from judge import ENVIRONMENT, FAILED, INTERRUPTED, LOST, UNCLEAR, Problem
from processes import send_signal, wait_until

ANY_FAILURE = set(range(1, 256))  # of mpirun, whose exit codes are its own
PATIENCE = 2  # seconds
FOR_RENDEZVOUS = 60  # seconds that ranks wait for each other
FOR_LAUNCHER = 3  # seconds after which a launcher ends the others, if one dies before the start
ENDING = (signal.SIGTERM, signal.SIGINT)


@dataclass
class Scene:
    """A run at the moment of its fault."""

    room: object
    context: object
    kind: str
    ranks: int
    moment: str
    arguments: list  # without those of its length and files: a run with these resumes
    job: object = None
    before: int = None  # newest checkpoint
    stopped: list = field(default_factory=list)

    @property
    def is_start(self):
        return self.moment == "start"


def begin(draw, room, context, kinds, moments=("start", "training", "training", "save", "save")):
    kinds = [kind for kind in kinds if kind in context.kinds_of_ranks]
    if not kinds:
        raise Skipped(context.missing_for_mpi)
    ranks, plan = draw_plan(draw)
    scene = Scene(
        room,
        context,
        draw_kind(draw, kinds),
        ranks,
        draw.choice(moments),
        room.arguments(plan, ranks),
    )
    if scene.moment == "save" or draw.random() < 0.3:
        write_model(room.path("config.json"), width=128, layers=4)
    more = f"--steps {FOREVER} --patience {PATIENCE}s -o out.pftrace"
    if scene.moment == "save" or draw.random() < 0.5:
        more += f" --save states --save-every {draw.choice((1, 1, 3))} --keep 2"
    pause = draw.choice((0, 0, 0.1)) if scene.is_start else 0
    scene.job = room.start(scene.kind, ranks, [*scene.arguments, *more.split()], pause=pause)
    scene.job.reach(scene.moment, draw)
    scene.before = newest_checkpoint(room)
    return scene


def judge_files(scene, is_graceful):
    """`is_graceful`: the run could write what was measured, and remove what was unfinished."""
    room = scene.room
    must_be_new = is_graceful and not scene.is_start and scene.kind != "mpi"
    problems = judge.check_timeline(room.path("out.pftrace"), OLD_TIMELINE, must_be_new)
    return problems + judge_checkpoints(room, scene.arguments, scene.before, not is_graceful)


def judge_job(scene, expected):
    if scene.kind == "mpi":
        before_its_start = {-number for number in ENDING} if scene.is_start else set()
        expected = Expected(ANY_FAILURE | before_its_start, is_silent=True)
    return judge_end(scene.job, scene.context, expected, scene.stopped)


# ---- a rank --------------------------------------------------------------------------------------


def fault_of_rank(number):
    def make(draw, room, context):
        scene = begin(draw, room, context, ("processes", "copies", "launcher", "mpi"))
        if scene.kind == "mpi" and number == signal.SIGSTOP and scene.is_start:
            scene.moment = "training"  # MPI_Init() waits without a limit
            scene.job.reach(scene.moment, draw)
        rank = draw.randrange(scene.ranks)
        pids = []
        wait_until(
            lambda: scene.job.has_ended() or pids.append(scene.job.process_of(rank)) or pids[-1], 10
        )
        if not pids or pids[-1] is None:
            return [
                *judge_job(scene, Expected({FAILED})),
                Problem(judge.CODE, f"rank {rank} never started"),
            ]
        send_signal(pids[-1], number)
        if number == signal.SIGSTOP:
            return after_stop(draw, scene, rank, pids[-1])
        if number in ENDING:
            return after_request(scene, rank, number)
        return after_death(scene, rank, number)

    return make


def names(scene, rank):
    """The rank is named in what the job prints; before the start it may be only missing."""
    text = scene.job.errors + "".join(process.output for process in scene.job.started)
    if re.search(rf"\brank {rank}\b|missing ranks.* {rank}\b", text):
        return []
    return [Problem(UNCLEAR, f"rank {rank} is not named: {text[-300:]!r}")]


def end_like_a_launcher(scene, rank):
    """Torchrun and srun end the other processes when one dies."""
    others = [process for process in scene.job.started if process.name != f"rank {rank}"]
    if not wait_until(lambda: all(p.has_ended() for p in others), FOR_LAUNCHER):
        scene.job.signal(signal.SIGTERM)


def after_death(scene, rank, number):
    codes = {FAILED}
    if scene.kind == "launcher" and scene.is_start:
        end_like_a_launcher(scene, rank)
        codes |= {ENVIRONMENT, INTERRUPTED, -signal.SIGTERM}
    expected = Expected(codes)
    if scene.kind == "launcher":
        expected = {process.name: expected for process in scene.job.started}
        expected[f"rank {rank}"] = Expected({-number}, is_silent=True)
    problems = judge_job(scene, expected)
    if not problems and not (scene.kind == "launcher" and scene.is_start):
        problems += names(scene, rank)
    return problems + judge_files(scene, is_graceful=False)


def after_request(scene, rank, number):
    """SIGTERM and SIGINT end the whole run, whichever rank receives it. Forked ranks leave SIGINT to
    the program that has forked them, since a terminal sends it to all."""
    codes = {INTERRUPTED}
    if scene.kind == "processes" and number == signal.SIGINT:
        time.sleep(0.3)
        scene.job.signal(signal.SIGINT)
    elif scene.kind == "processes":
        codes |= {FAILED}
    if scene.is_start:
        codes |= {FAILED, ENVIRONMENT, -number, 128 + number}
        if scene.kind == "launcher":
            end_like_a_launcher(scene, rank)
            codes.add(-signal.SIGTERM)
    problems = judge_job(scene, Expected(codes))
    return problems + judge_files(scene, is_graceful=False)


def after_stop(draw, scene, rank, pid):
    scene.stopped.append(pid)
    if scene.is_start and scene.kind != "launcher":
        scene.context = scene.context.with_limit(scene.context.limit + FOR_RENDEZVOUS)
    if scene.kind != "launcher":
        problems = judge_job(scene, Expected({FAILED, ENVIRONMENT} if scene.is_start else {FAILED}))
        return [
            *problems,
            *([] if problems else names(scene, rank)),
            *judge_files(scene, is_graceful=False),
        ]
    others = [process for process in scene.job.started if process.pid != pid]
    expected = {process.name: Expected({FAILED}) for process in others}
    if scene.is_start:
        end_like_a_launcher(scene, rank)
        for how in expected.values():
            how.codes |= {ENVIRONMENT, INTERRUPTED, -signal.SIGTERM}
    wait_until(lambda: all(process.has_ended() for process in others), scene.context.limit)
    last = draw.choice((signal.SIGCONT, signal.SIGKILL))
    codes = (
        {FAILED, ENVIRONMENT, INTERRUPTED, -signal.SIGTERM} if last == signal.SIGCONT else {-last}
    )
    expected[f"rank {rank}"] = Expected(codes, is_silent=last == signal.SIGKILL)
    problems = [] if scene.is_start else names(scene, rank)
    if all(process.has_ended() for process in others):
        send_signal(pid, last)
    return judge_job(scene, expected) + problems + judge_files(scene, is_graceful=False)


# ---- what started the ranks ----------------------------------------------------------------------


def fault_of_main(number, kinds, times=1):
    def make(draw, room, context):
        scene = begin(draw, room, context, kinds)
        for i in range(times):
            if i > 0:
                time.sleep(draw.uniform(0, 0.3))
            scene.job.main.signal(number)
        if number == signal.SIGSTOP:
            return after_pause(draw, scene)
        if number not in ENDING:
            problems = judge_end(
                scene.job, context, Expected({-number} | mpirun_codes(scene), is_silent=True)
            )
            return problems + judge_files(scene, is_graceful=False)
        codes = {INTERRUPTED} | ({-number} if scene.is_start else set())
        problems = judge_job(scene, Expected(codes))
        return problems + judge_files(scene, is_graceful=not problems)

    return make


def mpirun_codes(scene):
    return ANY_FAILURE if scene.kind == "mpi" else set()


def after_pause(draw, scene):
    """A pause is no failure: the run goes on, and ends when it is told to."""
    time.sleep(draw.uniform(0.5, 2 * PATIENCE))
    scene.job.main.signal(signal.SIGCONT)
    goes_on = not wait_until(scene.job.has_ended, 1)
    if scene.is_start and goes_on:
        wait_until(lambda: scene.job.is_training() or scene.job.has_ended(), 10)
    scene.job.signal(signal.SIGTERM)
    problems = judge_job(scene, Expected({INTERRUPTED}))
    if not goes_on:
        problems.append(
            Problem(LOST, f"the run has ended after a pause: {scene.job.errors[-200:]!r}")
        )
    return problems + judge_files(scene, is_graceful=not problems)


# ---- rows of the table ---------------------------------------------------------------------------

OWN = ("threads", "processes", "copies")
HANGUP, KILL, STOP = signal.SIGHUP, signal.SIGKILL, signal.SIGSTOP
TERM, INT = signal.SIGTERM, signal.SIGINT

KINDS = [
    Kind("SIGKILL to a rank", 10, fault_of_rank(KILL)),
    Kind("SIGSTOP to a rank", 6, fault_of_rank(STOP)),
    Kind("SIGTERM to a rank", 5, fault_of_rank(TERM)),
    Kind("SIGINT to a rank", 4, fault_of_rank(INT)),
    Kind("SIGHUP to a rank", 4, fault_of_rank(HANGUP)),
    Kind("SIGKILL to the program", 5, fault_of_main(KILL, OWN)),
    Kind("SIGSTOP, SIGCONT to the program", 3, fault_of_main(STOP, OWN)),
    Kind("SIGTERM to the program", 4, fault_of_main(TERM, OWN)),
    Kind("SIGINT to the program", 4, fault_of_main(INT, OWN)),
    Kind("SIGINT twice to the program", 3, fault_of_main(INT, OWN, times=2)),
    Kind("SIGHUP to the program", 3, fault_of_main(HANGUP, OWN)),
    Kind("SIGKILL to mpirun", 3, fault_of_main(KILL, ("mpi",))),
    Kind("SIGSTOP, SIGCONT to mpirun", 1, fault_of_main(STOP, ("mpi",))),
    Kind("SIGTERM to mpirun", 2, fault_of_main(TERM, ("mpi",))),
    Kind("SIGINT to mpirun", 2, fault_of_main(INT, ("mpi",))),
    Kind("SIGHUP to mpirun", 1, fault_of_main(HANGUP, ("mpi",))),
]
