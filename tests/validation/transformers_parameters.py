#!/usr/bin/env python3
"""Compares the parameter counts of the model presets with those of transformers.

Prints one row per preset whose class transformers has: the elements of all parameters of the model
on the meta device, and those of `meshwright show PRESET`. Score corrections, which
transformers stores as buffers, count as parameters, as in checkpoints.

    /tmp/hf/bin/python tests/validation/transformers_parameters.py build/release/bin/meshwright
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

PRESETS = pathlib.Path(__file__).resolve().parents[2] / "models" / "presets"
SAVED_BUFFERS = "e_score_correction_bias"


def count_of_transformers(config):
    keys = {key: value for key, value in config.items() if key != "model_type"}
    model_type = {"kimi_k2": "deepseek_v3"}.get(config["model_type"], config["model_type"])
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[model_type](**keys))
    saved = [b for name, b in model.named_buffers() if name.endswith(SAVED_BUFFERS)]
    return sum(p.numel() for p in model.parameters()) + sum(b.numel() for b in saved)


def count_of_meshwright(program, name):
    shown = subprocess.run([program, "show", name, "--json"], capture_output=True,
                           text=True, check=True).stdout
    return json.loads(shown)["parameters"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    wrong = 0
    print("| preset | transformers | meshwright |\n|---|---|---|")
    for path in sorted(PRESETS.glob("*.config.json")):
        config = json.loads(path.read_text())
        name = re.sub(r"\.config\.json$", "", path.name)
        if config["model_type"] not in CONFIG_MAPPING and config["model_type"] != "kimi_k2":
            continue
        if config["model_type"] == "bert":  # its causal class has no masked-language head
            continue
        theirs, ours = count_of_transformers(config), count_of_meshwright(arguments.program, name)
        wrong += theirs != ours
        print(f"| {name} | {theirs:,} | {ours:,}{'' if theirs == ours else ' DIFFERENT'} |",
              flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
