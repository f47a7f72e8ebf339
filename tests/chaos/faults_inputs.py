"""Input files that are cut or changed: refused with a reason, or harmless."""

import os
import struct
import subprocess

from faults import Expected, Kind, judge_end
from judge import DONE, ENVIRONMENT, FAILED, INPUT, USAGE

PLAN = "--pp 2"
TOKENS = 4000


def mutate(draw, content):
    """A few changes of the kinds that people and broken copies make."""
    content = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 5))):
        if not content:
            break
        position = draw.randrange(len(content))
        change = draw.choice(("cut", "flip", "remove", "repeat", "insert", "number", "tail"))
        if change == "cut":
            del content[position:]
        elif change == "tail":
            del content[-1 - draw.randrange(min(8, len(content))) :]
        elif change == "flip":
            content[position] ^= 1 << draw.randrange(8)
        elif change == "remove":
            del content[position : position + draw.choice((1, 4, 50))]
        elif change == "repeat":
            content[position:position] = content[position : position + draw.choice((1, 4, 50))]
        elif change == "insert":
            content[position:position] = draw.choice(
                (b"\0", b"-", b'"', b"{", b"[" * 2000, b"\xff\xfe", b"1e999")
            )
        else:
            digits = [i for i, byte in enumerate(content) if chr(byte).isdigit()]
            if digits:
                content[draw.choice(digits)] = ord(draw.choice("0123456789-"))
    return bytes(content)


def write_plan(room):
    command = [room.program, "plan", *room.arguments(PLAN, 2)[1:], "-o", "best.plan.json"]
    subprocess.run(command, cwd=room.folder, check=True, capture_output=True)


def write_tokens(draw, path):
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{TOKENS}H", *(draw.randrange(256) for _ in range(TOKENS))))


def write_recipe(path):
    with open(path, "w") as file:
        file.write('model = "config.json"\ncluster = "cpu-laptop"\ndtype = "fp32"\n# two stages\n')
        file.write(
            "gpus = 2\npp = 2\nglobal-batch = 12\nseq = 16\n[training]\nsteps = 2\nlr = 3e-4\n"
        )


# Memory may be missing for the sizes of a changed file, and training may diverge.
CODES = {DONE, FAILED, USAGE, INPUT, ENVIRONMENT}


def fault(name):
    def make(draw, room, context):
        arguments = room.arguments(PLAN, 2, "--steps 2")
        if name == "best.plan.json":
            write_plan(room)
            arguments = ["run", name, "--steps", "2"]
        elif name == "tokens.bin":
            write_tokens(draw, room.path(name))
            arguments += ["--tokens", name]
        elif name == "run.toml":
            write_recipe(room.path(name))
            arguments = ["run", name]
        with open(room.path(name), "r+b") as file:
            content = mutate(draw, file.read())
            file.seek(0)
            file.truncate()
            file.write(content)
        kind = draw.choice(("threads", "processes", "copies"))
        return judge_end(room.start(kind, 2, arguments), context, Expected(CODES))

    return make


def missing(draw, room, context):
    """A file that is gone, or is something else."""
    os.remove(room.path("config.json"))
    if draw.random() < 0.5:
        os.mkdir(room.path("config.json"))
    job = room.start(draw.choice(("threads", "copies")), 2, room.arguments(PLAN, 2, "--steps 2"))
    return judge_end(job, context, Expected({INPUT}, ("config.json",)))


KINDS = [
    Kind("plan file changed", 5, fault("best.plan.json")),
    Kind("model configuration changed", 4, fault("config.json")),
    Kind("token file changed", 3, fault("tokens.bin")),
    Kind("recipe changed", 3, fault("run.toml")),
    Kind("input file missing", 1, missing),
]
