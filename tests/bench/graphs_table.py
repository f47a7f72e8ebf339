#!/usr/bin/env python3
"""Table of published operator graphs: partitions found here beside those of other planners.

usage: graphs_table.py PROGRAM FOLDER

FOLDER has results.csv, with one row per instance and planner, and the graphs in one folder per
planner. Instances without a file are left out. CPU seconds here include reading the file; those of
other planners are of the machine that results.csv describes.
"""

import csv
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

EXACT = 1e-5  # relative; published values have six digits or more
PIPER_FILES = {"bert": "bert32a100", "resnet": "resnet"}
PIPEDREAM_BANDWIDTH = "1e9"  # bytes per second, the default of its optimizer


def dnn_partitioning_job(name, row):
    """Instance 'dnnp/throughput/GRAPH': the devices are in the file."""
    kind, _, graph = name.partition("/")
    return [f"dnn-partitioning/{kind}_{graph}.json"], "load_ns", 1e6


def piper_job(name, row):
    """Instance 'piper/GRAPH_GiB_DEVICES_MICROBATCHES_GiB/s[_LAYERS]'; 0 micro-batches: of the file."""
    graph, memory, devices, microbatches, bandwidth, *layers = name.split("_")
    if layers or graph not in PIPER_FILES:
        return None
    job = [f"piper/{PIPER_FILES[graph]}.json", "--devices", devices]
    job += ["--memory", memory + "GiB", "--bandwidth", bandwidth + "GiB/s"]
    if microbatches != "0":
        job += ["--microbatches", microbatches]
    return job, "time_per_microbatch_ns", 1e9


def pipedream_job(name, row):
    """Instance 'pipedream/GRAPH', with the arguments of the optimizer as settings."""
    words = row["settings"].split()

    def values_after(option):
        if option not in words:
            return []
        rest = words[words.index(option) + 1 :]
        end = next((i for i, word in enumerate(rest) if word.startswith("-")), len(rest))
        return rest[:end]

    sizes = values_after("-n")
    rates = values_after("-b") or [PIPEDREAM_BANDWIDTH] * len(sizes)
    # A partition of a graph with merged branches is one of the graph itself.
    job = [f"pipedream/{name.removesuffix('_compressed')}.txt"]
    job += ["--devices", "x".join(sizes), "--bandwidth"]
    return job + [",".join(f"{float(r) / 1e9:g}GB/s" for r in rates)], "time_per_minibatch_ns", 1e9


def iopddl_job(name, row):
    """Instance 'iopddl/LETTER', within the time of most instances of the contest."""
    return [f"iopddl/asplos-2025-iopddl-{name}.json.gz", "--time-limit", "60"], "cost", 1


ACESO_LAYERS = {"gpt_350M": 24, "gpt_1_3B": 24, "gpt_2_6B": 32, "gpt_6_7B": 32, "gpt_13B": 40}


def aceso_job(name, row):
    """Instance 'aceso/MODEL', with servers x devices and the batch as in Aceso's experiments."""
    if name not in ACESO_LAYERS:
        return None
    servers, _, per_server = row["devices"].split()[0].partition("x")
    settings = row["settings"].split()
    batch = next(word.removeprefix("gbs") for word in settings if word.startswith("gbs"))
    memory = settings[settings.index("mem") + 1]
    job = [f"aceso/profiled-time-eurosys/{name}", "--layers", str(ACESO_LAYERS[name])]
    job += ["--devices", f"{per_server}x{servers}", "--global-batch", batch]
    return job + ["--memory", f"{memory}MiB"], "step_ns", 1e9


def latency_job(name, row):
    """Instance 'dnnp/latency/GRAPH'."""
    job = [f"dnn-partitioning/latency_{name}.json", "--objective", "latency"]
    return job, "latency_ns", 1e6


KINDS = {  # prefix of instances: objective, own planner, job
    "dnnp/": ("max-load (time per sample)", "dnn-partitioning", dnn_partitioning_job),
    "dnnp/latency/": ("single-sample latency", "dnn-partitioning", latency_job),
    "piper/": ("TPS (max stage time per microbatch)", "Piper DP", piper_job),
    "aceso/": ("estimated iteration time", "Aceso search", aceso_job),
    "iopddl/": ("total cost", "contest 1st", iopddl_job),
    "pipedream/": ("time per stage (steady state, s/minibatch)", "PipeDream", pipedream_job),
}


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def published_jobs(folder):
    """(instance, job, key, scale) -> (value, planner, CPU seconds) of the best published result."""
    jobs = {}
    with open(folder / "results.csv", newline="") as file:
        for row in csv.DictReader(file):
            for prefix, (objective, planner, job_of) in KINDS.items():
                if not row["instance"].startswith(prefix) or row["objective"] != objective:
                    continue
                value = number(row["value"])
                job = job_of(row["instance"].removeprefix(prefix), row)
                if value is None or job is None or not row["peer"].startswith(planner):
                    continue
                if not any(folder.glob(job[0][0] + "*")):
                    continue
                key = (row["instance"], tuple(job[0]), job[1], job[2])
                if key not in jobs or value < jobs[key][0]:
                    jobs[key] = (value, row["peer"], number(row["cpu_s"]))
    return jobs


def solve(program, folder, arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(
        [program, "partition", "--json", folder / arguments[0], *arguments[1:]],
        capture_output=True,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode not in (0, 1):  # 1: nothing found that fits
        sys.exit(f"{' '.join(arguments)}: exit status {run.returncode}\n{run.stderr}")
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return json.loads(run.stdout), seconds


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, folder = os.path.abspath(sys.argv[1]), Path(sys.argv[2])
    counts = {"better": 0, "equal": 0, "worse": 0}
    proved, total = 0, 0.0
    print("| instance | settings | here | proved | CPU s | published | planner | CPU s | gap |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (name, job, key, scale), (value, planner, cpu) in published_jobs(folder).items():
        result, seconds = solve(program, folder, job)
        found = float("inf") if result[key] is None else result[key] / scale
        gap = found / value - 1
        counts["equal" if abs(gap) <= EXACT else "better" if gap < 0 else "worse"] += 1
        proved += result["proved_optimal"]
        total += seconds
        answer = "yes" if result["proved_optimal"] else f"gap {100 * (result['gap'] or 0):.3g} %"
        peer_seconds = "" if cpu is None else f"{cpu:.3g}"
        settings = " ".join(job[1:])
        print(
            f"| {name} | {settings} | {found:.9g} | {answer} | {seconds:.3f} "
            f"| {value:.9g} | {planner} | {peer_seconds} | {100 * gap:+.4f} % |",
            flush=True,
        )
    instances = sum(counts.values())
    if instances == 0:
        sys.exit(f"{folder}: no instances with a graph; is results.csv that of the graphs?")
    summary = ", ".join(f"{count} {word}" for word, count in counts.items())
    print(f"\n{instances} instances: {summary}; {proved} proved optimal; {total:.2f} s of CPU")


if __name__ == "__main__":
    main()
