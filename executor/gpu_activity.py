"""The kernels and copies of the last step in a trace of `meshwright run --activity`, by name.

usage: gpu_activity.py trace.json      prints a Markdown table
"""

import collections
import json
import re
import sys

LONGEST_NAME, ROWS = 70, 40


def short(name):
    name = re.sub(r"^void |meshwright::cuda::|\(anonymous namespace\)::|<unnamed>::", "", name)
    name = re.sub(r"copy of \d+ bytes", "copy", name)
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME - 3] + "..."


def main():
    with open(sys.argv[1]) as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    last = max(e.get("args", {}).get("step", 0) for e in events)
    own = [e for e in events if e.get("args", {}).get("step") == last]
    first, end = min(e["ts"] for e in own), max(e["ts"] + e["dur"] for e in own)
    events = [e for e in events if first <= e["ts"] < end]
    time, count = collections.Counter(), collections.Counter()
    for e in events:
        time[short(e["name"])] += e["dur"]
        count[short(e["name"])] += 1
    busy, until = 0.0, first
    for e in sorted(events, key=lambda e: e["ts"]):
        busy += max(0.0, e["ts"] + e["dur"] - max(until, e["ts"]))
        until = max(until, e["ts"] + e["dur"])
    span = end - first
    print(f"step {last}: {span / 1e3:.2f} ms, {100 * busy / span:.1f} % of it busy, {len(events)} kernels and copies\n")
    print("| kernel | count | time (us) | share |\n|---|---|---|---|")
    for name, us in time.most_common(ROWS):
        print(f"| {name.replace('|', '/')} | {count[name]} | {us:.0f} | {100 * us / span:.1f} % |")


main()
