"""PyTorch kernel times for comparison with gpu_report: same device, same sizes.

usage: gpu_torch.py results.json      prints a Markdown table
"""

import json
import sys

import torch
import torch.nn.functional as F

rows = []


def median_seconds(work, repeats=5, rounds=10):
    for _ in range(3):
        work()
    times = []
    for _ in range(rounds):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(200_000)  # lets the host run ahead
        first.record()
        for _ in range(repeats):
            work()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last) * 1e-3 / repeats)
    return sorted(times)[len(times) // 2]


def add(what, work, amount, unit, repeats=5):
    seconds = median_seconds(work, repeats)
    rows.append({"what": what, "time_us": 1e6 * seconds, "achieved_per_s": amount / seconds, "unit": unit})
    scale = 1e-9 if unit == "B/s" else 1e-12
    print(f"| {what} | {1e6 * seconds:.1f} | {scale * amount / seconds:.1f} |", flush=True)


def random(*shape, dtype=torch.bfloat16):
    return torch.rand(*shape, device="cuda", dtype=torch.float32).mul_(2).sub_(1).to(dtype)


def products():
    for m, n, k, trans_a, trans_b in [
        (8192, 8192, 8192, False, False), (16384, 4096, 4096, False, False),
        (16384, 14336, 4096, False, False), (16384, 4096, 14336, False, True),
        (4096, 14336, 16384, True, False), (8192, 3072, 768, False, False),
        (8192, 50304, 768, False, True)]:
        a = random(k, m).t() if trans_a else random(m, k)
        b = random(n, k).t() if trans_b else random(k, n)
        c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        name = f"GEMM {m} x {n} x {k} {'T' if trans_a else 'N'}{'T' if trans_b else 'N'}, bf16"
        add(name, lambda: torch.matmul(a, b, out=c), 2.0 * m * n * k, "flop/s", 3)


def attention():
    tokens = 16384
    for size in (64, 128):
        heads = 2048 // size
        for length in (1024, 4096, 16384):
            shape = (tokens // length, heads, length, size)
            q, k, v = (random(*shape).requires_grad_() for _ in range(3))
            flop = 2.0 * tokens * length * heads * size
            of = f" {length} keys, head size {size}, causal, bf16"
            add("attention forward," + of, lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                flop, "flop/s", 3)
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            dout = random(*shape)
            add("attention backward," + of,
                lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True),
                2.5 * flop, "flop/s", 3)


def streams():
    tokens, hidden, words = 16384, 4096, 50304
    a, b = random(tokens, hidden), random(tokens, hidden)
    y = torch.empty_like(a)
    size = 2.0 * tokens * hidden
    add("add, bf16", lambda: torch.add(a, b, out=y), 3 * size, "B/s")
    add("GELU, bf16", lambda: F.gelu(a, approximate="tanh"), 2 * size, "B/s")
    for h in (768, 4096, 8192):
        x, weight = random(tokens * hidden // h, h), random(h)
        add(f"layer norm of {h}, bf16", lambda: F.layer_norm(x, (h,), weight, weight), 2 * size, "B/s")
    logits = random(8192, words)
    targets = torch.randint(words, (8192,), device="cuda")
    add("cross-entropy, bf16", lambda: F.cross_entropy(logits, targets), 2.0 * 8192 * words, "B/s")


def main():
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}\n")
    print("| kernel | us | achieved |\n|---|---|---|")
    with torch.no_grad():
        products()
        streams()
    attention()
    with open(sys.argv[1], "w") as file:
        json.dump({"schema": 1, "torch": torch.__version__, "device": torch.cuda.get_device_name(),
                   "rows": rows}, file, indent=1)


main()
