"""PyTorch's training throughput for comparison with `meshwright run`, on one GPU.

usage: gpu_torch_train.py [--compile-only] results.json CONFIG.json:BATCH:LENGTH...

Prints one line per job. --compile-only takes one step of each, to fill the cache of torch.compile.

The same jobs: a gpt2 or llama config.json without dropout, bf16, AdamW, gradient clipping by norm; with
torch.compile, fused AdamW and scaled_dot_product_attention. Weights are bf16 with fp32 master weights and
gradients, as in Meshwright.
"""

import gc
import json
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

STEPS, WARM_UP = 15, 5
# Deeper models are compiled block by block: compiling them as a whole takes minutes.
MOST_COMPILED_BLOCKS = 16


class Gpt2Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        b, t, hidden = x.shape
        q, k, v = (
            m.view(b, t, self.heads, hidden // self.heads).transpose(1, 2)
            for m in self.qkv(self.norm1(x)).split(hidden, dim=2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, hidden))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, config, length):
        super().__init__()
        hidden = config["n_embd"]
        self.words = nn.Embedding(config["vocab_size"], hidden)
        self.positions = nn.Embedding(length, hidden)
        self.blocks = nn.ModuleList(Gpt2Block(hidden, config["n_head"]) for _ in range(config["n_layer"]))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, words, targets):
        x = self.words(words) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        return loss_of(F.linear(self.norm(x), self.words.weight), targets)


def rotated(x, cosine, sine):
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class LlamaBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.size, self.heads, self.groups = (
            config["head_dim"], config["num_attention_heads"], config["num_key_value_heads"])
        self.norm1 = nn.RMSNorm(hidden, config["rms_norm_eps"])
        self.norm2 = nn.RMSNorm(hidden, config["rms_norm_eps"])
        self.qkv = nn.Linear(hidden, (self.heads + 2 * self.groups) * self.size, bias=False)
        self.out = nn.Linear(self.heads * self.size, hidden, bias=False)
        self.gate, self.up = nn.Linear(hidden, inner, bias=False), nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x, cosine, sine):
        b, t, _ = x.shape
        heads = self.qkv(self.norm1(x)).view(b, t, -1, self.size).transpose(1, 2)
        q, k, v = heads.split((self.heads, self.groups, self.groups), dim=1)
        a = F.scaled_dot_product_attention(rotated(q, cosine, sine), rotated(k, cosine, sine), v,
                                           is_causal=True, enable_gqa=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, -1))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, config, length):
        super().__init__()
        size = config["head_dim"]
        self.words = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.blocks = nn.ModuleList(LlamaBlock(config) for _ in range(config["num_hidden_layers"]))
        self.norm = nn.RMSNorm(config["hidden_size"], config["rms_norm_eps"])
        angles = torch.outer(torch.arange(length, dtype=torch.float32),
                             config["rope_theta"] ** (-torch.arange(0, size, 2, dtype=torch.float32) / size))
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, words, targets):
        x = self.words(words)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return loss_of(F.linear(self.norm(x), self.words.weight), targets)


def loss_of(logits, targets):
    return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets.reshape(-1))


def train(file, batch, length, steps):
    """Step times in seconds, and losses."""
    with open(file) as text:
        config = json.load(text)
    torch.manual_seed(1)
    torch._dynamo.reset()
    with torch.device("cuda"):
        model = (Gpt2 if config["model_type"] == "gpt2" else Llama)(config, length).bfloat16()
        nn.init.normal_(model.words.weight, std=0.02)
        words = torch.randint(config["vocab_size"], (batch, length + 1))
    master = [p.detach().float().clone().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.AdamW(master, lr=1e-4, fused=True)
    if len(model.blocks) <= MOST_COMPILED_BLOCKS:
        loss_of_step = torch.compile(model)
    else:
        loss_of_step = model
        for block in model.blocks:
            block.compile()
    times, losses = [], []
    for _ in range(steps):
        torch.cuda.synchronize()
        start = time.perf_counter()
        loss = loss_of_step(words[:, :-1], words[:, 1:])
        loss.backward()
        for exact, used in zip(master, model.parameters()):
            exact.grad = used.grad.float()
            used.grad = None
        torch.nn.utils.clip_grad_norm_(master, 1.0, foreach=True)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(list(model.parameters()), master)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
        losses.append(loss.item())
    return times, losses


def main():
    arguments, rows = sys.argv[1:], []
    compile_only = arguments[0] == "--compile-only"
    if compile_only:
        arguments.pop(0)
    results = arguments.pop(0)
    for job in arguments:
        file, batch, length = job.rsplit(":", 2)
        batch, length = int(batch), int(length)
        times, losses = train(file, batch, length, 1 if compile_only else STEPS)
        times = times[0 if compile_only else WARM_UP:]
        gc.collect()
        torch.cuda.empty_cache()
        median = sorted(times)[len(times) // 2]
        name = os.path.basename(file).removesuffix(".config.json")
        rate = batch * length / median
        print(f"{name}, bf16, {batch} x {length}: {1e3 * median:.2f} ms/step, {rate:.0f} tokens/s, "
              f"PyTorch {torch.__version__} with torch.compile", flush=True)
        rows.append({"model": name, "batch": batch, "length": length, "step_s": median, "tokens_per_s": rate,
                     "step_times_s": times, "losses": losses})
        if compile_only:
            continue
        with open(results, "w") as text:
            json.dump({"schema": 1, "torch": torch.__version__, "device": torch.cuda.get_device_name(),
                       "jobs": rows}, text, indent=1)


main()
