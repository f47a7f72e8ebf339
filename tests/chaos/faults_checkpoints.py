"""Checkpoints that are cut, changed or removed between two runs: a damaged one is named, not loaded."""

import json
import os
import shutil
import struct

import judge
from faults import Expected, Kind, judge_end
from judge import DONE, INPUT, LOST, Problem

STEPS = 4
PLAN = "--pp 2"


def saved_room(room, context):
    """A room with a checkpoint of each step; made once, then copied."""
    kept = os.path.join(context.folder, "checkpoints")
    if not os.path.isdir(kept):
        run = room.run(room.arguments(PLAN, 2, f"--steps {STEPS} --save states --save-every 1"))
        if run.code != DONE or judge.checkpoints(room.path("states")) != list(range(1, STEPS + 1)):
            raise RuntimeError(f"cannot save checkpoints: {run.errors}")
        shutil.copytree(room.path("states"), kept)
        return
    shutil.copytree(kept, room.path("states"), dirs_exist_ok=True)


# ---- damages: each changes the file at `path` so that it differs -----------------------------------


def cut(draw, path):
    size = os.path.getsize(path)
    os.truncate(path, draw.choice((0, 7, 8, draw.randrange(size), size - 1)))


def flip_bits(draw, path):
    with open(path, "r+b") as file:
        content = bytearray(file.read())
        header = 8 + struct.unpack("<Q", content[:8])[0]
        for position in {
            draw.randrange(draw.choice((8, header, len(content))))
            for _ in range(draw.choice((1, 1, 3)))
        }:
            content[position] ^= 1 << draw.randrange(8)
        file.seek(0)
        file.write(content)


def zero_block(draw, path):
    """As after a power failure, with blocks that never reached the disk."""
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        before = file.read()
        header = 8 + struct.unpack("<Q", before[:8])[0]
        length = draw.choice((512, 4096))
        while True:
            start = draw.randrange(header, size) // 512 * 512
            if any(before[start : start + length]):
                break
        file.seek(start)
        file.write(bytes(min(length, size - start)))


def append(draw, path):
    with open(path, "ab") as file:
        file.write(draw.randbytes(draw.choice((1, 8, 4096))))


def changed_header(path, change):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, values = json.loads(file.read(length)), file.read()
    change(header)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + values)


def swap_tensors(draw, path):
    """Two tensors of one shape change places."""

    def change(header):
        shapes = {}
        for name, entry in header.items():
            if name != "__metadata__" and name.endswith(".weight"):
                shapes.setdefault(tuple(entry["shape"]), []).append(name)
        one, other = draw.sample(
            draw.choice([names for names in shapes.values() if len(names) > 1]), 2
        )
        offsets = header[one]["data_offsets"], header[other]["data_offsets"]
        header[other]["data_offsets"], header[one]["data_offsets"] = offsets

    changed_header(path, change)


def change_metadata(draw, path):
    def change(header):
        metadata = header["__metadata__"]
        key = draw.choice(sorted(metadata))
        if key == "checksum" or draw.random() < 0.5:
            del metadata[key]
        else:
            metadata[key] += draw.choice("0123456789")

    changed_header(path, change)


def remove(draw, path):
    os.remove(path)


def replace_with_folder(draw, path):
    os.remove(path)
    os.mkdir(path)


# ---- resuming ------------------------------------------------------------------------------------


def fault(damage, is_damage=True):
    def make(draw, room, context):
        saved_room(room, context)
        whole = set(range(1, STEPS + 1))
        victims = draw.sample(sorted(whole), draw.choice((1, 1, 2, STEPS)))
        if draw.random() < 0.7 and STEPS not in victims:
            victims[0] = STEPS
        for step in victims:
            damage(draw, room.path(f"states/{judge.checkpoint_name(step)}"))
        whole -= set(victims)
        before = {step: fingerprint(room, step) for step in whole}
        problems = resume_file(room, context, victims[0])
        problems += resume_folder(room, context, max(whole, default=None))
        if before != {step: fingerprint(room, step) for step in whole}:
            problems.append(Problem(LOST, "a whole checkpoint has changed"))
        return problems

    return make


def fingerprint(room, step):
    with open(room.path(f"states/{judge.checkpoint_name(step)}"), "rb") as file:
        return hash(file.read())


def start_resumed(room, path):
    return room.start("threads", 2, room.arguments(PLAN, 2, f"--resume {path} --steps 1"))


def resume_file(room, context, step):
    name = f"states/{judge.checkpoint_name(step)}"
    return judge_end(
        start_resumed(room, name), context, Expected({INPUT}, (judge.checkpoint_name(step),))
    )


def resume_folder(room, context, newest):
    """The newest whole one is found; if there is none, the damaged ones are named."""
    job = start_resumed(room, "states")
    if newest is None:
        return judge_end(job, context, Expected({INPUT}, (r"states|step-",)))
    problems = judge_end(job, context, Expected({DONE}))
    if not problems and f"resuming at step {newest}\n" not in job.main.errors:
        problems.append(
            Problem(LOST, f"does not resume at step {newest}: {job.main.errors[:300]!r}")
        )
    return problems


KINDS = [
    Kind("checkpoint cut off", 4, fault(cut)),
    Kind("checkpoint with flipped bits", 5, fault(flip_bits)),
    Kind("checkpoint with a block of zeros", 2, fault(zero_block)),
    Kind("checkpoint with bytes appended", 1, fault(append)),
    Kind("checkpoint with swapped tensors", 2, fault(swap_tensors)),
    Kind("checkpoint with changed metadata", 3, fault(change_metadata)),
    Kind("checkpoint removed", 1, fault(remove)),
    Kind("checkpoint replaced by a folder", 1, fault(replace_with_folder)),
]
