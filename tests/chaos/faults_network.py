"""Networks and peers that misbehave while a job starts, or while it trains."""

import shutil
import signal
import time

import judge
import network
from faults import Expected, Kind, Skipped, judge_end
from jobs import FOREVER, Job, draw_plan, free_port
from judge import DONE, ENVIRONMENT, FAILED, INPUT, INTERRUPTED, UNCLEAR, Problem
from processes import wait_until

PATIENCE = 3  # seconds
FOR_OTHERS = 2  # seconds after which a launcher ends the others when one has ended


def prepared(room, ranks, plan, steps):
    """(job without processes, command, variables)"""
    job = Job("launcher", ranks)
    room.jobs.append(job)
    command = [
        room.program,
        *room.arguments(plan, ranks, f"--steps {steps} --patience {PATIENCE}s"),
    ]
    variables = {
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    return job, command, variables


def all_succeed(job, context):
    return judge_end(job, context, Expected({DONE}))


# ---- strangers -----------------------------------------------------------------------------------


def strangers(behave, most_at_once):
    """They come before, between and after the ranks, which do not notice."""

    def make(draw, room, context):
        ranks, plan = draw_plan(draw)
        job, command, variables = prepared(room, ranks, plan, 3)
        crowd = network.Strangers(job.mark, behave, draw.random(), draw.choice((1, most_at_once)))
        try:
            order = list(range(ranks))
            draw.shuffle(order)
            for rank in order:
                room.start_rank(job, rank, command, **variables)
                time.sleep(draw.uniform(0, 0.6))
            return all_succeed(job, context)
        finally:
            crowd.close()

    return make


# ---- peers ---------------------------------------------------------------------------------------


def late_rank(draw, room, context):
    ranks, plan = draw_plan(draw)
    job, command, variables = prepared(room, ranks, plan, 3)
    late = draw.randrange(ranks)
    for rank in range(ranks):
        if rank != late:
            room.start_rank(job, rank, command, **variables)
    time.sleep(draw.uniform(0.5, 5))
    room.start_rank(job, late, command, **variables)
    return all_succeed(job, context)


def missing_rank(draw, room, context):
    """Until the launcher ends the others."""
    ranks, plan = draw_plan(draw)
    job, command, variables = prepared(room, ranks, plan, 3)
    missing = draw.randrange(ranks)
    for rank in range(ranks):
        if rank != missing:
            room.start_rank(job, rank, command, **variables)
    wait_until(job.has_ended, draw.uniform(0.5, 2))
    job.signal(draw.choice((signal.SIGTERM, signal.SIGINT)))
    return judge_end(job, context, Expected({INTERRUPTED}))


def with_option(command, option, value):
    """The command with this option, which replaces one that it has."""
    if option not in command:
        return [*command, option, value]
    place = command.index(option)
    return [*command[: place + 1], value, *command[place + 2 :]]


def odd_rank(codes, mentions, variables_of=lambda *_: {}, options=()):
    """A rank that differs from the others; it or they say why, and a launcher ends the rest."""

    def make(draw, room, context):
        ranks, plan = draw_plan(draw)
        job, command, variables = prepared(room, ranks, plan, 3)
        odd = draw.randrange(1, ranks)  # rank 0 is the one that all others meet
        for rank in range(ranks):
            own, own_command = dict(variables), command
            if rank == odd:
                own.update(variables_of(draw, rank, ranks))
                if options:
                    own_command = with_option(command, *draw.choice(options))
            room.start_rank(job, rank, own_command, **own)
        wait_until(lambda: any(process.has_ended() for process in job.started), context.limit)
        if not job.wait(FOR_OTHERS):
            job.signal(signal.SIGTERM)
        problems = judge_end(job, context, Expected(codes | {INTERRUPTED}))
        if not problems and not any(process.code in codes for process in job.started):
            problems.append(Problem(judge.CODE, "no process fails"))
        if not problems and not any(word in job.errors for word in mentions):
            problems.append(Problem(UNCLEAR, f"says none of {mentions}: {job.errors[-300:]!r}"))
        return problems

    return make


def other_secret(draw, rank, ranks):
    return {"MESHWRIGHT_JOB_SECRET": draw.choice(("", "another", "x" * 1000))}


def other_place(draw, rank, ranks):
    return draw.choice(
        ({"RANK": str((rank + 1) % ranks)}, {"RANK": str(ranks)}, {"WORLD_SIZE": str(ranks + 1)})
    )


OTHER_SETTINGS = (
    ("--seed", "7"),
    ("--lr", "0.5"),
    ("--steps", "4"),
    ("--seq", "32"),
    ("--clip", "0.5"),
    ("--micro-batch", "2"),
)

DIFFERENCES = ("--", "strategy", "plan file")

# ---- connections ---------------------------------------------------------------------------------


def through_proxy(make_harm, judge_job, steps=20):
    """Two ranks, of which rank 1 reaches rank 0 through a proxy only."""

    def make(draw, room, context):
        job, command, variables = prepared(
            room, 2, draw.choice(("--pp 2", "--dp 2", "--tp 2")), steps
        )
        proxy = network.Proxy(int(variables["MASTER_PORT"]), make_harm(draw))
        try:
            room.start_rank(job, 0, command, **variables)
            room.start_rank(job, 1, command, **{**variables, "MASTER_PORT": str(proxy.port)})
            return judge_job(job, context)
        finally:
            proxy.close()

    return make


def delay(draw):
    pause = draw.choice((0.001, 0.01, 0.03))

    def harm(part, passed):
        time.sleep(pause)
        return part

    return harm


def position(draw):
    """Of the harm: in the handshake, or in what ranks send each other."""
    return draw.choice((draw.randrange(200), draw.randrange(200, 100_000)))


def cut(draw):
    end = position(draw)
    return lambda part, passed: part if passed + len(part) <= end else None


def corrupt(draw):
    begin, bit = position(draw), 1 << draw.randrange(8)

    def harm(part, passed):
        if not passed <= begin < passed + len(part):
            return part
        harmed = bytearray(part)
        harmed[begin - passed] ^= bit
        return bytes(harmed)

    return harm


def stall(draw):
    """Nothing passes after a while, but no connection is closed."""
    end = position(draw)
    return lambda part, passed: part if passed + len(part) <= end else b""


def fails_or_is_ended(mentions, codes=frozenset()):
    """The ranks notice by themselves, or a launcher ends those that still wait for a lost one."""

    def judge_job(job, context):
        wait_until(lambda: any(process.has_ended() for process in job.started), 3 * PATIENCE)
        if not job.wait(3 * PATIENCE if job.is_training() else FOR_OTHERS):
            job.signal(signal.SIGTERM)
        return judge_end(
            job, context, Expected(codes | {FAILED, ENVIRONMENT, INTERRUPTED}, mentions)
        )

    return judge_job


# ---- namespaces ----------------------------------------------------------------------------------


def linked(draw, room, loss, steps):
    """(link, job) of two ranks in network namespaces of their own."""
    if not shutil.which("unshare") or not shutil.which("nsenter") or not shutil.which("ip"):
        raise Skipped("unshare, nsenter or ip is not installed")
    try:
        link = network.Link(draw.choice((0, 0.005, 0.02)), loss, draw.random())
    except OSError as error:
        raise Skipped(f"no network namespaces: {error}") from error
    job, command, variables = prepared(room, 2, draw.choice(("--pp 2", "--dp 2", "--tp 2")), steps)
    variables["MASTER_ADDR"] = network.ADDRESSES[0]
    for rank in range(2):
        room.start_rank(job, rank, [*link.command_in(rank), *command], **variables)
    return link, job


def lossy_link(draw, room, context):
    link, job = linked(draw, room, draw.choice((0, 0.01, 0.05)), 3)
    try:
        return all_succeed(job, context)
    finally:
        link.close()


def cut_link(draw, room, context):
    """A silent peer is noticed, once it has been silent for longer than the patience."""
    link, job = linked(draw, room, 0, FOREVER)
    try:
        wait_until(lambda: job.is_training() or job.has_ended(), 20)
        wait_until(job.has_ended, draw.uniform(0, 0.5))
        link.is_cut = True
        return judge_end(job, context, Expected({FAILED}, (r"rank [01]\b",)))
    finally:
        link.close()


KINDS = [
    Kind("strangers: garbage", 2, strangers(network.send_garbage, 20)),
    Kind("strangers: silent", 2, strangers(network.stay_silent, 40)),
    Kind("strangers: half-open", 2, strangers(network.close_half, 20)),
    Kind("strangers: reset", 1, strangers(network.reset, 20)),
    Kind("strangers: slow", 2, strangers(network.send_slowly, 2)),
    Kind("strangers: wrong greeting", 2, strangers(network.send_wrong_greeting, 5)),
    Kind("rank late", 1, late_rank),
    Kind("rank missing", 2, missing_rank),
    Kind("rank with another secret", 2, odd_rank({ENVIRONMENT}, ("secret",), other_secret)),
    Kind(
        "rank with another place",
        2,
        odd_rank({INPUT, ENVIRONMENT}, ("rank", "RANK", "process"), other_place),
    ),
    Kind(
        "rank with other options",
        3,
        odd_rank({FAILED, INPUT, ENVIRONMENT}, DIFFERENCES, options=OTHER_SETTINGS),
    ),
    Kind("connections delayed", 1, through_proxy(delay, all_succeed, steps=2)),
    Kind(
        "connection cut",
        3,
        through_proxy(cut, fails_or_is_ended(("connection|process was killed",))),
    ),
    Kind("connection corrupted", 3, through_proxy(corrupt, fails_or_is_ended((), {DONE}))),
    Kind(
        "connection stalled",
        3,
        through_proxy(stall, fails_or_is_ended(("progress|does not answer|timed out|connection",))),
    ),
    Kind("network namespaces, delay and loss", 2, lossy_link),
    Kind("network namespaces, link cut", 2, cut_link),
]
