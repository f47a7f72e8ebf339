"""What all kinds of faults share: their registration, and the judgement of a run."""

from dataclasses import dataclass, field, replace

import judge


class Skipped(Exception):
    """This kind of fault cannot be made on this machine; the text says why."""


@dataclass
class Context:
    """Limits and abilities of this call."""

    program: str
    folder: str  # for files that several faults use
    limit: float = 30  # seconds until a job counts as hung
    is_private: bool = False  # mounts are seen by this process and its children only
    kinds_of_ranks: tuple = ()
    missing_for_mpi: str = ""

    def with_limit(self, limit):
        return replace(self, limit=limit)


@dataclass
class Kind:
    """A row of the table: faults of one kind."""

    name: str
    weight: int
    make: object  # (draw, room, context) -> list of problems


@dataclass
class Expected:
    """How a process of a job must end."""

    codes: set = field(default_factory=lambda: {judge.DONE})
    mentions: tuple = ()
    is_silent: bool = False  # nothing can be said: it was killed, or its output is closed


def judge_end(job, context, expected, stopped=()):
    """Waits for the end of a job, then judges its processes; `expected`: by name, or for all."""
    problems = judge.check_end(job, context.limit)
    if problems:
        return problems  # it was killed: nothing else tells more
    problems += judge.check_orphans(job, stopped)
    for process in job.started:
        process.finish_reading()
        how = expected[process.name] if isinstance(expected, dict) else expected
        problems += judge.check_code(process, how.codes)
        if not how.is_silent:
            problems += judge.check_message(process, mentions=how.mentions)
    return problems


def newest_checkpoint(room):
    steps = judge.checkpoints(room.path("states"))
    return steps[-1] if steps else None


def judge_checkpoints(room, arguments, before, may_leave_temporaries=False):
    """Nothing is lost in the folder of checkpoints, which a next run resumes."""
    folder = room.path("states")
    problems = judge.check_checkpoints(folder, before, may_leave_temporaries)
    if not problems and (newest := newest_checkpoint(room)) is not None:
        problems += judge.check_resume(room, arguments, newest)
    return problems
