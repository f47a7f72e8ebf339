"""Plans of transformers as operator graphs, next to those of the same transformers as config.json.

    python3 -m venv /tmp/hf
    /tmp/hf/bin/pip install torch transformers onnx onnxscript
    /tmp/hf/bin/python tests/validation/graph_plans.py build/release/bin/meshwright FOLDER

Writes NAME.json and NAME.onnx, with the loss, to FOLDER. The first table has the best plans without tensor and
context parallelism, the second one plans with fixed tensor parallelism, of configurations with or without sequence
parallelism, whichever is faster. Other options are those that graphs have.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import torch
import transformers
from torch import nn

SEQUENCE = 1024
CONFIGS = {
    "gpt2": transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0),
    "gpt2-medium": transformers.GPT2Config(n_embd=1024, n_layer=24, n_head=16, resid_pdrop=0,
                                           embd_pdrop=0, attn_pdrop=0),
    "llama": transformers.LlamaConfig(
        vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=8,
        num_attention_heads=32, num_key_value_heads=4, max_position_embeddings=2048),
    "qwen3": transformers.Qwen3Config(
        vocab_size=32000, hidden_size=1024, intermediate_size=3072, num_hidden_layers=8,
        num_attention_heads=16, num_key_value_heads=8, head_dim=128, max_position_embeddings=2048),
}
#: Devices and samples per step.
JOBS = [("dgx-a100", 1, 16), ("dgx-a100", 8, 128), ("dgx-h100", 8, 256)]
#: Tensor-parallel devices.
DEGREES = [2, 4]


class Training(nn.Module):
    def __init__(self, config):
        super().__init__()
        config.use_cache = False
        self.model = transformers.AutoModelForCausalLM.from_config(config)

    def forward(self, tokens, labels):
        logits = self.model(tokens).logits
        return nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]).float(), labels.view(-1))


def export(name, config, folder):
    training = Training(config).train()
    with torch.no_grad():  # the ONNX exporter would merge equal tensors, and remove zeros
        for parameter in training.parameters():
            parameter.normal_(std=0.02)
    (folder / f"{name}.json").write_text(json.dumps(training.model.config.to_dict(), default=str))
    tokens = torch.zeros(2, SEQUENCE, dtype=torch.long)
    batch = torch.export.Dim("batch", min=1, max=1024)
    shapes = {"tokens": {0: batch}, "labels": {0: batch}}
    with contextlib.redirect_stdout(sys.stderr):
        torch.onnx.export(training, (tokens, tokens), folder / f"{name}.onnx", dynamo=True,
                          dynamic_shapes=shapes, external_data=True, verbose=False,
                          input_names=["tokens", "labels"])


def plan(program, *arguments):
    done = subprocess.run([program, "plan", "--json", *map(str, arguments)],
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr.decode())
    return json.loads(done.stdout)


def compare_tensor_parallel(program, name, folder):
    for degree in DEGREES:
        job = ["--cluster", "dgx-h100", "--gpus", 8, "--global-batch", 256, "--micro-batch", 8, "--tp", degree]
        fixed = ["--seq", SEQUENCE, "--fix", "--cp", 1, "--pp", 1, "--zero", 1, "--bucket", "none",
                 "--no-overlap-gather", "--no-tp-comm-overlap"]
        best = min((plan(program, "--model", folder / f"{name}.json", *job, *fixed, switch)["plans"][0]
                    for switch in ("--sequence-parallel", "--no-sequence-parallel")),
                   key=lambda each: each["step_time_ns"])
        plans = plan(program, "--graph", folder / f"{name}.onnx", *job, "--top", 50)["plans"]
        same = next(each for each in plans if len(each["stages"]) == 1 and each["zero"] == 1)
        switch = "SP" if best["strategy"]["sequence_parallel"] else ""
        print(f"| {name} | TP{degree} DP{8 // degree} {switch} | {best['step_time_ns'] / 1e6:.1f} ms | "
              f"{same['step_ns'] / 1e6:.1f} ms | "
              f"{100 * (same['step_ns'] / best['step_time_ns'] - 1):+.2f} % |", flush=True)


def compare(program, name, folder):
    for cluster, gpus, batch in JOBS:
        job = ["--cluster", cluster, "--gpus", gpus, "--global-batch", batch]
        best = plan(program, "--model", folder / f"{name}.json", *job, "--seq", SEQUENCE, "--fix",
                    "--tp", 1, "--cp", 1, "--top", 1)["plans"][0]
        same = plan(program, "--graph", folder / f"{name}.onnx", *job)["plans"][0]
        strategy = best["strategy"]
        data = "+".join(str(stage["data"]) for stage in same["stages"])
        print(f"| {name} | {gpus} {cluster} | DP{strategy['dp']} ZeRO {strategy['zero']} micro-batch "
              f"{strategy['micro_batch']} | {best['step_time_ns'] / 1e6:.1f} ms | DP{data} ZeRO "
              f"{same['zero']} micro-batch {same['micro_batch']} | {same['step_ns'] / 1e6:.1f} ms | "
              f"{100 * (same['step_ns'] / best['step_time_ns'] - 1):+.2f} % |", flush=True)


def main(program, folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    print("| model | GPUs | plan of config.json | step | plan of ONNX | step | difference |\n"
          "|---|---|---|---|---|---|---|")
    for name, config in CONFIGS.items():
        export(name, config, folder)
        compare(program, name, folder)
    print("\n| model | plan of config.json | step | step of ONNX | difference |\n|---|---|---|---|---|")
    for name in CONFIGS:
        compare_tensor_parallel(program, name, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
