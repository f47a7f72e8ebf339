"""Limits of the system on memory, files and processes, and standard streams that cannot be written."""

import os
import shutil

import judge
from faults import Expected, Kind, Skipped, judge_checkpoints, judge_end
from jobs import OLD_TIMELINE, draw_kind, draw_plan
from judge import DONE, ENVIRONMENT, FAILED, INPUT

OWN = ("threads", "processes", "copies")
BROKEN_PIPE = -13  # SIGPIPE, as of all programs
FIRST_USER = 54_000  # user IDs without a name or another process
# The dynamic loader ends a program before it starts.
OF_THE_LOADER = "error while loading shared libraries"


def under_limit(
    draw, room, context, limit, value, codes, mentions, ranks_and_plan=None, wrapper=()
):
    """A short run with checkpoints and a timeline under a limit of prlimit."""
    kind = draw_kind(draw, OWN)
    ranks, plan = ranks_and_plan or draw_plan(draw)
    arguments = room.arguments(plan, ranks)
    more = "--steps 3 --save states --save-every 1 -o out.pftrace".split()
    job = room.start(kind, ranks, [*arguments, *more], [*wrapper, "prlimit", f"--{limit}={value}"])
    if job.wait(context.limit) and is_of_loader(job):
        return []
    problems = judge_end(job, context, Expected(codes, mentions))
    problems += judge.check_timeline(room.path("out.pftrace"), OLD_TIMELINE, job.main.code == DONE)
    return problems + judge_checkpoints(room, arguments, None, may_leave_temporaries=False)


def is_of_loader(job):
    job.main.finish_reading()
    return job.main.code == 127 and OF_THE_LOADER in job.main.errors


def file_size(draw, room, context):
    value = draw.choice((0, 100, 4096, draw.randrange(1 << 20), 10 << 20))
    return under_limit(
        draw, room, context, "fsize", value, {DONE, FAILED, ENVIRONMENT}, ("File too large",)
    )


def memory(draw, room, context):
    value = int(1e6 * 10 ** draw.uniform(1.7, 2.4))  # 50 to 250 MB
    return under_limit(
        draw, room, context, "as", value, {DONE, FAILED, ENVIRONMENT}, ("(?i)memory|limit|start",)
    )


def descriptors(draw, room, context):
    mentions = ("(?i)too many open files|descriptor",)
    value = draw.randrange(3, 20)
    return under_limit(
        draw, room, context, "nofile", value, {DONE, FAILED, INPUT, ENVIRONMENT}, mentions
    )


def processes(draw, room, context):
    if os.getuid() != 0 or not shutil.which("setpriv"):
        raise Skipped("only root can run it as a user without other processes")
    if not is_readable_for_all(context.program):
        raise Skipped("the program cannot be read by other users")
    user = str(FIRST_USER + draw.randrange(1000))
    for folder, _, files in os.walk(room.folder):
        os.chmod(folder, 0o777)
        for name in files:
            os.chmod(os.path.join(folder, name), 0o666)
    wrapper = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    mentions = ("(?i)process|thread|limit|unavailable",)
    value = draw.randrange(1, 16)
    codes = {DONE, FAILED, ENVIRONMENT}
    return under_limit(draw, room, context, "nproc", value, codes, mentions, wrapper=wrapper)


def is_readable_for_all(path):
    path = os.path.abspath(path)
    while path != "/":
        if not os.stat(path).st_mode & 0o001:
            return False
        path = os.path.dirname(path)
    return True


# ---- standard streams ----------------------------------------------------------------------------


def streams(redirections, codes, is_silent):
    """A run whose streams are redirected by a shell."""

    def make(draw, room, context):
        redirection = draw.choice(redirections)
        ranks, plan = draw_plan(draw)
        arguments = room.arguments(plan, ranks)
        wrapper = ["sh", "-c", f'exec "$@" {redirection}', "sh"]
        job = room.start(
            draw_kind(draw, OWN), ranks, [*arguments, *"--steps 3 --save states".split()], wrapper
        )
        problems = judge_end(job, context, Expected(codes, is_silent=is_silent))
        return problems + judge_checkpoints(room, arguments, 3 if job.main.code == DONE else None)

    return make


def broken_pipe(draw, room, context):
    """The reader of a stream goes away. Without standard error the run goes on, as if it were closed;
    without standard output it ends as other programs do, or says that results cannot be written."""
    unread = draw.choice((("stdout",), ("stderr",), ("stdout", "stderr")))
    ranks, plan = draw_plan(draw)
    arguments = room.arguments(plan, ranks)
    more = "--steps 50 --save states --save-every 1 --keep 2".split()
    kind = draw_kind(draw, OWN)
    job = room.start(kind, ranks, [*arguments, *more], unread=unread)
    codes = {DONE}
    if "stdout" in unread:
        codes = {ENVIRONMENT, BROKEN_PIPE} | ({FAILED} if kind == "copies" else set())
    problems = judge_end(job, context, Expected(codes, is_silent="stderr" in unread))
    before = 50 if job.main.code in (DONE, ENVIRONMENT) else None
    return problems + judge_checkpoints(
        room, arguments, before, may_leave_temporaries=job.main.code < 0
    )


KINDS = [
    Kind("limit on file sizes", 3, file_size),
    Kind("limit on memory", 5, memory),
    Kind("limit on descriptors", 4, descriptors),
    Kind("limit on processes", 3, processes),
    Kind("standard output closed or full", 2, streams((">&-", ">/dev/full"), {ENVIRONMENT}, False)),
    Kind("standard error closed or full", 2, streams(("2>&-", "2>/dev/full"), {DONE}, True)),
    Kind("broken pipe", 2, broken_pipe),
]
