#!/usr/bin/env python3
"""Checks exported launches with the parsers of the programs themselves: ./dev check-launches.

Every case is planned, exported, and read by the argument parser or configuration class of the
named version; parallel sizes and batch must be those of the plan. Nothing is trained, no GPU is
used. With --print-options: the options of Megatron-LM, as in megatron_core_v0.19.0_options.txt.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import typing
from pathlib import Path

if not hasattr(typing, "override"):  # Megatron-LM asks for Python 3.12, for this decorator alone
    typing.override = lambda function: function

# Model, cluster, GPUs, batch, sequence length, strategy, and the formats that can express it.
MEGATRON = ["megatron", "slurm", "megatron-bridge"]
CASES = [
    ("llama-3.1-70b", "dgx-h100", 64, 128, 8192,
     "--tp 4 --pp 4 --vpp 5 --cp 2 --sequence-parallel --zero 1 --recompute none", MEGATRON),
    ("llama-3.1-70b", "dgx-h100", 64, 128, 8192,
     "--tp 4 --pp 1 --cp 1 --zero 3 --sequence-parallel --recompute full",
     MEGATRON + ["torchtitan", "accelerate"]),
    ("llama-3.1-8b", "dgx-h100", 8, 64, 4096, "--tp 1 --pp 1 --cp 1 --zero 2 --recompute none",
     MEGATRON + ["torchtitan", "accelerate", "deepspeed"]),
    ("llama-3.1-8b", "dgx-h100", 16, 64, 4096,
     "--tp 2 --pp 4 --vpp 2 --schedule zb-v --zero 3 --sequence-parallel --recompute none",
     ["torchtitan", "pytorch-csv"]),
    ("llama-3.1-8b", "dgx-h100", 16, 64, 4096,
     "--tp 2 --pp 4 --zero 1 --no-sequence-parallel --schedule 1f1b --recompute full "
     "--attention standard --trainer megatron-deepspeed",
     ["deepspeed", "megatron", "pytorch-csv"]),
    ("llama-3.1-8b", "dgx-h100", 16, 64, 4096,
     "--tp 2 --pp 4 --sequence-parallel --dtype fp8 --fp8-recipe blockwise --bf16-end-layers 1 "
     "--schedule 1f1b --zero 1 --recompute block:2", MEGATRON),
    ("gpt3-175b", "dgx-a100", 256, 256, 2048,
     "--tp 8 --pp 8 --vpp 3 --sequence-parallel --zero 1 --recompute modules:layernorm", MEGATRON),
    ("mixtral-8x7b", "dgx-h100", 32, 128, 4096, "--tp 1 --pp 1 --ep 8 --zero 2 --recompute none",
     ["megatron"]),
    ("qwen3-30b-a3b", "dgx-h100", 32, 128, 4096,
     "--tp 2 --pp 2 --ep 8 --etp 1 --sequence-parallel --zero 1 --recompute none", MEGATRON),
    ("deepseek-v3", "dgx-h100", 256, 512, 4096,
     "--tp 1 --pp 8 --ep 32 --zero 1 --recompute full", MEGATRON),
    ("gpt-oss-20b", "dgx-h100", 16, 64, 4096, "--tp 1 --pp 1 --zero 1 --recompute none", MEGATRON),
    ("nemotron-4-15b", "dgx-h100", 16, 64, 4096,
     "--tp 2 --pp 1 --zero 1 --sequence-parallel --recompute none", MEGATRON),
    ("llama-4-maverick", "dgx-h100", 256, 512, 4096,
     "--tp 1 --pp 4 --ep 32 --zero 1 --recompute full", MEGATRON),
    ("gpt2-xl", "dgx-a100", 8, 64, 1024, "--tp 1 --pp 1 --zero 0 --recompute none",
     ["megatron", "accelerate"]),
]


def expect(what, actual, wanted):
    if actual != wanted:
        raise AssertionError(f"{what}: {actual}, the plan has {wanted}")


# ---- Megatron-LM --------------------------------------------------------------------------------


def pretend_hopper():
    """validate_args() looks at the device."""
    import torch

    properties = type("Properties", (), {"major": 9, "minor": 0})()
    torch.cuda.get_device_properties = lambda *_: properties
    torch.cuda.get_device_capability = lambda *_: (9, 0)


def megatron_words(script):
    """What the script gives to pretrain_gpt.py, and the environment that it sets."""
    commands = """
script=$1; set --
torchrun() { env | grep '^CUDA_DEVICE_MAX' || true; echo ---; while [[ $1 != *.py ]]; do shift; done
             shift; printf '%s\\n' "$@"; }
srun() { "$@"; }
scontrol() { echo node0; }
NODE_RANK=0 MASTER_ADDR=node0 SLURM_JOB_ID=1 SLURM_JOB_NODELIST=node0
source "$script"
"""
    run = subprocess.run(["bash", "-c", commands, "bash", script], check=True, text=True,
                         capture_output=True)
    environment, words = run.stdout.split("---\n", 1)
    return dict(line.split("=", 1) for line in environment.split()), words.splitlines()


def check_megatron(file, plan, ranks):
    pretend_hopper()
    environment, words = megatron_words(file)
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    os.environ.update(environment, WORLD_SIZE=str(ranks), RANK="0")
    from megatron.training import arguments

    sys.argv = ["pretrain_gpt.py", *words]
    args = arguments.parse_args()
    arguments.validate_args(args, {})
    args.apply_rope_fusion = False  # requires Transformer Engine, which requires a GPU
    config = arguments.core_transformer_config_from_args(args)
    s = plan["strategy"]
    for field, key in [("tensor_model_parallel_size", "tp"), ("pipeline_model_parallel_size", "pp"),
                       ("context_parallel_size", "cp"), ("expert_model_parallel_size", "ep"),
                       ("data_parallel_size", "dp"), ("micro_batch_size", "micro_batch"),
                       ("global_batch_size", "global_batch"), ("seq_length", "seq")]:
        expect(field, getattr(args, field), s[key])
    expect("chunks", args.virtual_pipeline_model_parallel_size or 1, s["vpp"])
    expect("layers", config.num_layers, sum(plan["blocks_per_stage"]))


def print_options():
    from megatron.training import arguments

    parser = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_megatron_arguments(parser)
    for action in parser._actions:
        for option in action.option_strings:
            if not option.startswith("--") or option == "--help":
                continue
            kind = "switch" if action.nargs == 0 else "list" if action.nargs else "one"
            name = getattr(action.type, "__name__", "str") if kind != "switch" else ""
            choices = ",".join(str(getattr(c, "name", c)) for c in action.choices or [])
            print(" ".join([option[2:], kind, name, choices]).strip())


# ---- other programs -----------------------------------------------------------------------------


def check_torchtitan(file, plan, ranks):
    from torchtitan.config import ConfigManager
    from torchtitan.protocols.train_spec import get_train_spec

    config = ConfigManager().parse_args(["--job.config_file", file])
    p, s = config.parallelism, plan["strategy"]
    shards = p.data_parallel_shard_degree * p.data_parallel_replicate_degree
    for name, actual, key in [("tensor", p.tensor_parallel_degree, "tp"), ("data", shards, "dp"),
                              ("pipeline", p.pipeline_parallel_degree, "pp"),
                              ("context", p.context_parallel_degree, "cp"),
                              ("expert", p.expert_parallel_degree, "ep"),
                              ("sequence", config.training.seq_len, "seq")]:
        expect(name, actual, s[key])
    flavors = get_train_spec(config.model.name).model_args
    expect("layers", flavors[config.model.flavor].n_layers, sum(plan["blocks_per_stage"]))
    if s["pp"] > 1:
        from torch.distributed.pipelining.schedules import get_schedule_class

        get_schedule_class(p.pipeline_parallel_schedule)


def check_deepspeed(file, plan, ranks):
    import deepspeed.runtime.config as config

    s = plan["strategy"]
    config.dist.get_rank = lambda *_: 0
    mpu = type("Groups", (), {"get_data_parallel_world_size": lambda self: s["dp"]})()
    read = config.DeepSpeedConfig(file, mpu=mpu)
    expect("batch", read.train_batch_size, s["global_batch"])
    expect("ZeRO", read.zero_optimization_stage, s["zero"])
    expect("tensor", max(read.tensor_parallel_config.autotp_size, 1), s["tp"])


def check_accelerate(file, plan, ranks):
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    expect("processes", load_config_from_file(file).num_processes, ranks)
    args, _, _ = _validate_launch_command(launch_command_parser().parse_args(
        ["--config_file", file, "--machine_rank", "0", "--main_process_ip", "node0", "train.py"]))
    s = plan["strategy"]
    expect("FSDP", bool(args.use_fsdp), s["zero"] >= 2)
    if s["zero"] >= 2:
        expect("version", int(args.fsdp_version), 2)
        expect("tensor", args.parallelism_config_tp_size, s["tp"])
        data = args.parallelism_config_dp_shard_size * args.parallelism_config_dp_replicate_size
        expect("data", data, s["dp"])


def fields_of_classes(folders):
    """Annotated fields by class, with those of the bases; aliases of imports are followed."""
    fields, bases = {}, {}
    for folder in folders:
        for path in Path(folder).rglob("*.py"):
            tree = ast.parse(path.read_text(errors="replace"))
            aliases = {a.asname: a.name for node in ast.walk(tree)
                       if isinstance(node, ast.ImportFrom) for a in node.names if a.asname}
            for node in ast.walk(tree):
                if not isinstance(node, ast.ClassDef):
                    continue
                names = {item.target.id for item in node.body
                         if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)}
                names |= {argument.arg for item in node.body
                          if getattr(item, "name", "") == "__init__"
                          for argument in item.args.args + item.args.kwonlyargs}
                fields.setdefault(node.name, set()).update(names)
                parents = [getattr(base, "attr", getattr(base, "id", "")) for base in node.bases]
                bases.setdefault(node.name, set()).update(aliases.get(p, p) for p in parents)

    def all_of(name, seen=()):
        found = set(fields.get(name, ()))
        for base in bases.get(name, ()):
            if base not in seen:
                found |= all_of(base, (*seen, name))
        return found

    return {name: all_of(name) for name in fields}


def check_megatron_bridge(file, plan, ranks, folders):
    """Classes and their keywords: importing the program requires Transformer Engine."""
    tree = ast.parse(Path(file).read_text())
    known = fields_of_classes(folders)
    functions = {"distributed_fused_adam_with_cosine_annealing", "config", "pretrain"}
    sizes, count = {}, 0
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", "")
        if name in functions:
            continue
        if name not in known:
            raise AssertionError(f"no class {name}")
        for keyword in call.keywords:
            if keyword.arg not in known[name]:
                raise AssertionError(f"{name} has no field {keyword.arg}")
            count += 1
            if isinstance(keyword.value, ast.Constant):
                sizes[keyword.arg] = keyword.value.value
    if count < 20:
        raise AssertionError(f"only {count} fields found")
    expect("tensor", sizes.get("tensor_model_parallel_size", 1), plan["strategy"]["tp"])
    expect("batch", sizes["global_batch_size"], plan["strategy"]["global_batch"])


def check_csv(file, plan, ranks, program):
    run = subprocess.run([program, "schedule", "--check", file, "--tf", "1", "--tb", "1", "--tw",
                          "1", "--json"], text=True, capture_output=True)
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    expect("rows", len(json.loads(run.stdout)["orders"]), plan["strategy"]["pp"])


# ---- cases --------------------------------------------------------------------------------------


def check_one(options):
    """In a process of its own: the programs have global state."""
    plan = json.loads(Path(options.plan).read_text())
    ranks = plan["strategy"]["tp"] * plan["strategy"]["pp"] * plan["strategy"]["cp"]
    ranks *= plan["strategy"]["dp"]
    checks = {"megatron": check_megatron, "slurm": check_megatron, "torchtitan": check_torchtitan,
              "deepspeed": check_deepspeed, "accelerate": check_accelerate,
              "megatron-bridge": lambda *a: check_megatron_bridge(*a, options.bridge),
              "pytorch-csv": lambda *a: check_csv(*a, options.program)}
    checks[options.one](options.file, plan, ranks)


def run_case(options, index, case):
    """Returns the number of failures and of checks."""
    model, cluster, gpus, batch, length, strategy, formats = case
    folder = Path(options.folder)
    plan = folder / f"{index}.plan.json"
    command = [options.program, "plan", "--model", model, "--cluster", cluster, "--gpus", str(gpus),
               "--global-batch", str(batch), "--seq", str(length), *strategy.split(),
               "--bucket", "none", "--time-limit", "2", "-o", str(plan)]
    run = subprocess.run(command, text=True, capture_output=True)
    if run.returncode != 0:
        print(f"FAILED {model} {strategy}\n{run.stderr}")
        return len(formats), len(formats)
    failures = 0
    for target in formats:
        file = folder / f"{index}.{target}{'.json' if target == 'deepspeed' else ''}"
        if target == "accelerate":
            file = file.with_suffix(".yaml")
        steps = [[options.program, "export", str(plan), "--to", target, "-o", str(file)],
                 [sys.executable, __file__, options.program, options.folder, "--one", target,
                  "--plan", str(plan), "--file", str(file), "--bridge", *options.bridge]]
        for step in steps:
            run = subprocess.run(step, text=True, capture_output=True)
            if run.returncode != 0:
                break
        passed = run.returncode == 0
        failures += not passed
        print(f"{'ok    ' if passed else 'FAILED'} {target:16}{model} {strategy}")
        if not passed:
            print("\n".join((run.stdout + run.stderr).splitlines()[-8:]))
    return failures, len(formats)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", nargs="?", help="meshwright")
    parser.add_argument("folder", nargs="?", help="where plans and launches are written")
    parser.add_argument("--bridge", nargs="*", default=[],
                        help="folders with the sources of Megatron-Bridge and its Megatron-Core")
    parser.add_argument("--print-options", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--plan", help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.print_options:
        return print_options()
    if options.one:
        return check_one(options)
    results = [run_case(options, index, case) for index, case in enumerate(CASES)]
    failures, checks = (sum(column) for column in zip(*results))
    print(f"{checks - failures} of {checks} launches are accepted")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
