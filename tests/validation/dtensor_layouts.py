"""Layouts of tensor-parallel plans, next to PyTorch's DTensor.

    python3 -m venv /tmp/hf && /tmp/hf/bin/pip install torch transformers
    cd FOLDER && /tmp/hf/bin/python .../tests/validation/dtensor_layouts.py .../build/release/bin/meshwright

Exports models with random weights by meshwright.export_graph to the current folder, plans them with two tensor-parallel
GPUs, and runs every operator whose output has a layout on DTensors: confirmed is a layout that the operator has for some
layouts of its inputs without a collective. Runs on meta tensors, with a process group that sends nothing.
"""

import itertools
import json
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import torch
import torch.distributed as dist
import transformers
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.testing._internal.distributed.fake_pg import FakeStore

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "meshwright"))
import export_graph  # noqa: E402  (without the package, whose extension module may not be built)

DEVICES = 2


class Training(nn.Module):
    """Cross entropy of a model's logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, inputs, labels):
        logits = self.model(inputs).logits
        return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


class Translation(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, inputs, labels):
        return self.model(input_ids=inputs, labels=labels).loss


def tokens(batch, length):
    return torch.zeros(batch, length, dtype=torch.long, device="meta")


def language(config, batch, length):
    config.use_cache = False
    return Training(transformers.AutoModelForCausalLM.from_config(config)), (tokens(batch, length),) * 2


def masked(config, batch, length):
    return Training(transformers.AutoModelForMaskedLM.from_config(config)), (tokens(batch, length),) * 2


def image(config, batch):
    model = transformers.AutoModelForImageClassification.from_config(config)
    return Training(model), (torch.zeros(batch, 3, 224, 224, device="meta"),
                             torch.zeros(batch, dtype=torch.long, device="meta"))


def translation(config, batch, length):
    config.use_cache = False
    return Translation(transformers.AutoModelForSeq2SeqLM.from_config(config)), (tokens(batch, length),) * 2


#: Samples per micro-batch, and a function that makes the model and its inputs.
MODELS = {
    "gpt2": (8, lambda batch: language(transformers.GPT2Config(
        n_layer=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0), batch, 1024)),
    "llama": (2, lambda batch: language(transformers.LlamaConfig(
        hidden_size=4096, intermediate_size=11008, num_hidden_layers=2, num_attention_heads=32,
        num_key_value_heads=8), batch, 4096)),
    "bert": (8, lambda batch: masked(transformers.BertConfig(), batch, 512)),
    "vit": (32, lambda batch: image(transformers.ViTConfig(num_labels=1000), batch)),
    "t5": (8, lambda batch: translation(transformers.T5Config(decoder_start_token_id=0), batch, 512)),
    "resnet": (32, lambda batch: image(transformers.ResNetConfig(num_labels=1000), batch)),
}


def plan(program, path, batch):
    done = subprocess.run([program, "plan", "--graph", path, "--cluster", "dgx-h100", "--gpus", "8", "--global-batch",
                           "64", "--micro-batch", str(batch), "--tp", str(DEVICES), "--json"],
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr.decode())
    return json.loads(done.stdout)["tensor_parallel"]["placements"]


def text(placement):
    if placement.is_replicate():
        return "Replicate"
    return f"Shard({placement.dim})" if placement.is_shard() else "Partial"


def layouts(value):
    return [Replicate(), *(Shard(dim) for dim, size in enumerate(value.shape) if size > 1 and size % DEVICES == 0)]


class Oracle:
    def __init__(self):
        self.mesh = init_device_mesh("cpu", (DEVICES,))
        self.known = {}

    def distributed(self, value, placement):
        shape = list(value.shape)
        if placement.is_shard():
            shape[placement.dim] //= DEVICES
        local = torch.empty(shape, dtype=value.dtype, device="meta")
        return DTensor.from_local(local, self.mesh, [placement], run_check=False)

    def result(self, node, inputs):
        """The layout of the output, and the number of collectives; None: not a DTensor."""
        def value(item):
            if isinstance(item, torch.fx.Node):
                held = item.meta.get("val")
                return self.distributed(held, inputs[item]) if item in inputs else held
            return type(item)(map(value, item)) if isinstance(item, (list, tuple)) else item
        with CommDebugMode() as collectives, torch.no_grad():
            output = node.target(*map(value, node.args), **{k: value(v) for k, v in node.kwargs.items()})
        output = output[0] if isinstance(output, (list, tuple)) else output
        if not isinstance(output, DTensor):
            return None
        return text(output.placements[0]), collectives.get_total_counts()

    def confirms(self, node, wanted):
        tensors = [item for item in node.all_input_nodes if hasattr(item.meta.get("val"), "shape")]
        shapes = tuple(tuple(item.meta["val"].shape) for item in tensors)
        others = str([item for item in node.args if not isinstance(item, torch.fx.Node)])
        key = (str(node.target), shapes, others, wanted)
        if key not in self.known:
            self.known[key] = any(
                self.try_result(node, dict(zip(tensors, choice))) == (wanted, 0)
                for choice in itertools.product(*(layouts(item.meta["val"]) for item in tensors)))
        return self.known[key]

    def try_result(self, node, inputs):
        try:
            return self.result(node, inputs)
        except (RuntimeError, NotImplementedError, ValueError, AssertionError):
            return None  # DTensor has no rule for this operator with these layouts


def compare(program, name, oracle):
    batch, make = MODELS[name]
    with torch.device("meta"):
        model, inputs = make(batch)
    exported = torch.export.export(model.train(), inputs, strict=False)
    path = Path(f"{name}.onnx")
    path.write_bytes(export_graph.Writer(exported).bytes())
    placements = plan(program, path, batch)
    counts, missing = Counter(), Counter()
    for node in exported.graph.nodes:
        if node.op != "call_function" or node.name not in placements:
            continue
        is_confirmed = oracle.confirms(node, placements[node.name])
        counts[is_confirmed] += 1
        if not is_confirmed:
            missing[f"{node.target} {placements[node.name]}"] += 1
    others = ", ".join(f"{what} ({count})" for what, count in sorted(missing.items()))
    print(f"| {name} | {counts[True]} | {counts[False]} | {others} |", flush=True)


def main(program):
    warnings.filterwarnings("ignore")
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=DEVICES)
    oracle = Oracle()
    print("| model | confirmed | not confirmed | which |\n|---|---|---|---|")
    for name in MODELS:
        compare(program, name, oracle)


if __name__ == "__main__":
    main(*sys.argv[1:])
