"""PyTorch training throughput of GPT-2 for comparison with `meshwright run`.

usage: gpu_torch_train.py results.json      prints one line

The same job: GPT-2 124M without dropout, bf16, batches of 8 sequences of 1024 tokens, AdamW,
gradient clipping by norm; with torch.compile, fused AdamW and scaled_dot_product_attention. Weights
are bf16 with fp32 master weights, as in Meshwright.
"""

import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

LAYERS, HIDDEN, HEADS, WORDS, LENGTH, BATCH = 12, 768, 12, 50257, 1024, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (
            m.view(b, t, HEADS, HIDDEN // HEADS).transpose(1, 2)
            for m in self.qkv(self.norm1(x)).split(HIDDEN, dim=2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, HIDDEN))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, HIDDEN), nn.Embedding(LENGTH, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN)
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, words, targets):
        x = self.words(words) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.words.weight)
        return F.cross_entropy(logits.float().view(-1, WORDS), targets.view(-1))


def main():
    torch.manual_seed(1)
    model = Gpt2().cuda().bfloat16()
    master = [p.detach().float().clone().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.AdamW(master, lr=1e-4, fused=True)
    step_of = torch.compile(model)
    words = torch.randint(WORDS, (BATCH, LENGTH + 1), device="cuda")
    times, losses = [], []
    for _ in range(15):
        torch.cuda.synchronize()
        start = time.perf_counter()
        loss = step_of(words[:, :-1], words[:, 1:])
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
    median = sorted(times[5:])[5]
    rate = BATCH * LENGTH / median
    print(f"PyTorch {torch.__version__}, torch.compile, GPT-2 124M, bf16, {BATCH} x {LENGTH}: "
          f"{1e3 * median:.2f} ms/step, {rate:.0f} tokens/s")
    with open(sys.argv[1], "w") as file:
        json.dump({"schema": 1, "torch": torch.__version__, "device": torch.cuda.get_device_name(),
                   "model": "gpt2", "batch": BATCH, "length": LENGTH, "step_s": median,
                   "tokens_per_s": rate, "losses": losses}, file, indent=1)


main()
