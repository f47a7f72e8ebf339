"""Exports models with random weights as operator graphs, and compares their parameters and forward
FLOPs with those that PyTorch counts.

    python3 -m venv /tmp/hf
    /tmp/hf/bin/pip install torch torchvision transformers onnx onnxscript
    /tmp/hf/bin/python tests/validation/graph_models.py build/release/bin/meshwright FOLDER

Writes NAME.onnx and NAME.graph.onnx (of meshwright.export_graph) to FOLDER. Needs no downloads of
weights. Percentages are differences from PyTorch.
"""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import torch
import torchvision
import transformers
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "meshwright"))
import export_graph  # noqa: E402  (without the package, whose extension module may not be built)


class LstmStack(nn.Module):
    """Embedding, four LSTM layers and a projection, as in the medium models of GNMT."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32000, 1024)
        self.lstm = nn.LSTM(1024, 1024, num_layers=4, batch_first=True)
        self.output = nn.Linear(1024, 32000)

    def forward(self, tokens):
        return self.output(self.lstm(self.embedding(tokens))[0])


class UNet(nn.Module):
    """Encoder and decoder with skip connections (Ronneberger et al., arXiv 1505.04597)."""

    def __init__(self, width=64, depth=4):
        super().__init__()
        widths = [width * 2**level for level in range(depth + 1)]

        def block(inputs, outputs):
            return nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU(),
                nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU())

        self.down = nn.ModuleList(block(i, o) for i, o in zip([3] + widths, widths))
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(i, o, 2, stride=2) for i, o in zip(widths[:0:-1], widths[-2::-1]))
        self.merge = nn.ModuleList(
            block(i, o) for i, o in zip(widths[:0:-1], widths[-2::-1]))
        self.head = nn.Conv2d(width, 3, 1)

    def forward(self, image):
        skips = []
        for level, block in enumerate(self.down):
            image = block(image if level == 0 else nn.functional.max_pool2d(image, 2))
            skips.append(image)
        skips.pop()
        for up, merge in zip(self.up, self.merge):
            image = merge(torch.cat([skips.pop(), up(image)], dim=1))
        return self.head(image)


class Experts(nn.Module):
    """Transformer layers with soft routing: every expert computes every token."""

    def __init__(self, width=512, experts=8, layers=4):
        super().__init__()
        self.attention = nn.ModuleList(
            nn.MultiheadAttention(width, 8, batch_first=True) for _ in range(layers))
        self.router = nn.ModuleList(nn.Linear(width, experts) for _ in range(layers))
        self.up = nn.ParameterList(
            nn.Parameter(0.02 * torch.randn(experts, width, 4 * width)) for _ in range(layers))
        self.down = nn.ParameterList(
            nn.Parameter(0.02 * torch.randn(experts, 4 * width, width)) for _ in range(layers))

    def forward(self, x):
        for attention, router, up, down in zip(self.attention, self.router, self.up, self.down):
            x = x + attention(x, x, x, need_weights=False)[0]
            shares = router(x).softmax(-1)
            hidden = nn.functional.gelu(torch.einsum("btd,edf->btef", x, up))
            x = x + torch.einsum("btef,efd,bte->btd", hidden, down, shares)
        return x


def tokens(*shape):
    return torch.randint(0, 1000, shape)


class Output(nn.Module):
    """Only the first output tensor of a model of transformers, without caches."""

    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)), return_dict=False)[0]


def hugging_face(model, config, *names, **changes):
    settings = config(attn_implementation="eager", **changes)
    if hasattr(settings, "use_cache"):
        settings.use_cache = False
    return Output(model(settings), *names)


def models():
    t = transformers
    yield "resnet50", torchvision.models.resnet50(), (torch.randn(8, 3, 224, 224),)
    yield "vit_b_16", torchvision.models.vit_b_16(), (torch.randn(8, 3, 224, 224),)
    yield "unet", UNet(), (torch.randn(2, 3, 128, 128),)
    yield "bert", hugging_face(t.BertModel, t.BertConfig, "input_ids"), (tokens(4, 128),)
    yield "gpt2", hugging_face(t.GPT2LMHeadModel, t.GPT2Config, "input_ids"), (tokens(2, 256),)
    yield ("t5", hugging_face(t.T5ForConditionalGeneration, t.T5Config, "input_ids",
                              "decoder_input_ids"), (tokens(2, 128), tokens(2, 64)))
    yield ("clip", hugging_face(t.CLIPModel, t.CLIPConfig, "input_ids", "pixel_values"),
           (tokens(4, 77), torch.randn(4, 3, 224, 224)))
    yield "experts", Experts(), (torch.randn(2, 128, 512),)
    yield "lstm", LstmStack(), (tokens(16, 32),)


def counted_by_torch(model, inputs):
    """FLOPs of the forward and of the backward pass. Its counter does not know recurrent layers."""
    with FlopCounterMode(display=False) as counter:
        output = model(*inputs)
    forward = counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        output.sum().backward()
    return forward, counter.get_total_flops()


def counted_by_meshwright(program, file):
    start = time.perf_counter()
    result = subprocess.run([program, "partition", file, "--cluster", "dgx-a100", "--json"],
                            capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if result.returncode != 0:
        return {"error": result.stderr.strip()}
    report = json.loads(result.stdout)
    return {**report["model"], "seconds": seconds, "stages": len(report["stages"]),
            "time_ns": report["time_per_microbatch_ns"], "optimal": report["proved_optimal"]}


def row(name, kind, counts, torch_counts=None):
    def cell(key):
        if torch_counts is None or counts[key] == torch_counts[key]:
            return f"{counts[key]:,.0f}"
        return f"{counts[key]:,.0f} ({counts[key] / max(1, torch_counts[key]) - 1:+.3%})"
    cells = [cell(key) for key in ("parameters", "forward_flop", "backward_flop")]
    search = ("" if torch_counts is None else f"{counts['nodes']} | {counts['stages']} | "
              f"{counts['time_ns'] / 1e6:.3f} ms{'' if counts['optimal'] else ' (bound)'} | "
              f"{counts['seconds']:.2f} s")
    print(f"| {name} | {kind} | {' | '.join(cells)} | {search or ' | | | '} |", flush=True)


def main(program, folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    print("| model | counted by | parameters | forward FLOP | backward FLOP | nodes | stages | "
          "micro-batch | search |\n|---|---|---|---|---|---|---|---|---|")
    for name, model, inputs in models():
        model.eval()
        with torch.no_grad():  # equal tensors would be merged by the ONNX exporter
            for parameter in model.parameters():
                parameter.normal_(std=0.02)
        forward, backward = counted_by_torch(model, inputs)
        used = [p for p in model.parameters() if p.grad is not None]
        counts = {"parameters": sum(p.numel() for p in used), "forward_flop": forward,
                  "backward_flop": backward}
        row(name, "torch", counts)
        exports = {"ONNX": folder / f"{name}.onnx", "export_graph": folder / f"{name}.graph.onnx"}
        with contextlib.redirect_stdout(sys.stderr):
            torch.onnx.export(model, inputs, exports["ONNX"], dynamo=True, external_data=True,
                              verbose=False)
        export_graph.export_graph(model, inputs, exports["export_graph"])
        for kind, file in exports.items():
            ours = counted_by_meshwright(program, file)
            if "error" in ours:
                print(f"| {name} | {kind} | {ours['error']} |")
            else:
                row(name, kind, ours, counts)


if __name__ == "__main__":
    main(*sys.argv[1:])
