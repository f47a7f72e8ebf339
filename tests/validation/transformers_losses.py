#!/usr/bin/env python3
"""Compares losses of `meshwright run` with those of HuggingFace transformers in fp64.

For every family a tiny model is written by save_pretrained(), trained by transformers in fp64 (its
rotary embeddings, norms and routers stay in the precision that its classes ask for) and by
`meshwright run --init` under several plans. Printed: the largest relative difference of the losses
of all steps, by family and plan.

    python3 -m venv /tmp/hf && /tmp/hf/bin/pip install torch transformers
    /tmp/hf/bin/python tests/validation/transformers_losses.py build/release/bin/meshwright
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

STEPS, BATCH, LENGTH, VOCABULARY = 5, 4, 16, 96
PLANS = {
    "1 rank": "--gpus 1",
    "tp 2": "--gpus 2 --tp 2 --sequence-parallel",
    "pp 2": "--gpus 2 --pp 2",
    "dp 2, ZeRO 3": "--gpus 2 --dp 2 --zero 3",
    "cp 2": "--gpus 2 --cp 2",
    "ep 2": "--gpus 2 --dp 2 --ep 2",
}
COMMON = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=4, num_attention_heads=4,
              num_key_value_heads=2, vocab_size=VOCABULARY, max_position_embeddings=64,
              pad_token_id=None, bos_token_id=None, eos_token_id=None)
LLAMA3 = dict(rope_type="llama3", rope_theta=5e5, factor=8.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=32)
YARN = dict(rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=16,
            mscale=0.7, mscale_all_dim=0.9, beta_fast=32, beta_slow=1)
GPT_OSS_YARN = dict(rope_type="yarn", rope_theta=150000.0, factor=32.0, beta_fast=32.0,
                    beta_slow=1.0, truncate=False, original_max_position_embeddings=16)
MLA = dict(q_lora_rank=24, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8,
           num_key_value_heads=4, moe_intermediate_size=16, first_k_dense_replace=1)
LLAMA4 = dict(intermediate_size=24, intermediate_size_mlp=48, num_local_experts=4, head_dim=8,
              num_experts_per_tok=1, attention_chunk_size=6, floor_scale=4, attn_scale=0.5,
              rope_parameters=dict(LLAMA3, high_freq_factor=1.0))
MOE = dict(num_experts_per_tok=2, moe_intermediate_size=16)

# name: (model_type, settings that differ from COMMON)
MODELS = {
    "gpt2": ("gpt2", dict(n_embd=32, n_layer=4, n_head=4, n_positions=64, vocab_size=VOCABULARY,
                          attn_pdrop=0, embd_pdrop=0, resid_pdrop=0, layer_norm_epsilon=1e-3)),
    "gpt2, inverse layers": ("gpt2", dict(n_embd=32, n_layer=4, n_head=4, n_positions=64,
                                          vocab_size=VOCABULARY, attn_pdrop=0, embd_pdrop=0,
                                          resid_pdrop=0, scale_attn_by_inverse_layer_idx=True,
                                          activation_function="gelu")),
    "llama": ("llama", dict(rms_norm_eps=1e-3, rope_parameters=dict(rope_type="default",
                                                                    rope_theta=5e5))),
    "llama, llama3 rope": ("llama", dict(rope_parameters=LLAMA3, attention_bias=True,
                                         mlp_bias=True)),
    "llama, linear rope": ("llama", dict(rope_parameters=dict(rope_type="linear", factor=4.0,
                                                              rope_theta=1e4),
                                         hidden_act="gelu")),
    "llama, dynamic rope": ("llama", dict(rope_parameters=dict(rope_type="dynamic", factor=4.0,
                                                               rope_theta=1e4),
                                          hidden_act="gelu_pytorch_tanh")),
    "llama, yarn": ("llama", dict(rope_parameters=YARN)),
    "mistral": ("mistral", dict(sliding_window=6, rope_parameters=dict(rope_type="default",
                                                                       rope_theta=1e6))),
    "qwen2": ("qwen2", dict(rope_parameters=dict(rope_type="default", rope_theta=1e6),
                            use_sliding_window=True, sliding_window=6, max_window_layers=2)),
    "qwen3": ("qwen3", dict(head_dim=12, rope_parameters=dict(rope_type="default",
                                                              rope_theta=1e6))),
    "mixtral": ("mixtral", dict(num_local_experts=4, num_experts_per_tok=2)),
    "qwen2_moe": ("qwen2_moe", dict(num_experts=4, shared_expert_intermediate_size=24,
                                    norm_topk_prob=False, **MOE)),
    "qwen3_moe": ("qwen3_moe", dict(num_local_experts=4, head_dim=8, norm_topk_prob=True, **MOE)),
    "qwen3_moe, raw weights": ("qwen3_moe", dict(num_local_experts=4, head_dim=8,
                                                 norm_topk_prob=False, **MOE)),
    "gpt_oss": ("gpt_oss", dict(num_local_experts=4, num_experts_per_tok=2, head_dim=8,
                                sliding_window=6, swiglu_limit=0.05,
                                rope_parameters=GPT_OSS_YARN)),
    "deepseek_v2": ("deepseek_v2", dict(n_routed_experts=4, n_shared_experts=1,
                                        num_experts_per_tok=2, topk_method="group_limited_greedy",
                                        n_group=2, topk_group=1, routed_scaling_factor=1.7,
                                        rope_parameters=YARN, **MLA)),
    "deepseek_v3": ("deepseek_v3", dict(n_routed_experts=8, n_shared_experts=1,
                                        num_experts_per_tok=2, n_group=4, topk_group=2,
                                        routed_scaling_factor=1.7, rope_parameters=YARN, **MLA)),
    "deepseek_v3, no groups": ("deepseek_v3", dict(n_routed_experts=4, n_shared_experts=1,
                                                   num_experts_per_tok=2, n_group=1, topk_group=1,
                                                   norm_topk_prob=False, rope_interleave=False,
                                                   **dict(MLA, q_lora_rank=None))),
    "glm4_moe": ("glm4_moe", dict(n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=2,
                                  moe_intermediate_size=16, n_group=2, topk_group=1, head_dim=8,
                                  routed_scaling_factor=1.7, attention_bias=True, use_qk_norm=True,
                                  first_k_dense_replace=1)),
    "gemma": ("gemma", dict(head_dim=8)),
    "gemma2": ("gemma2", dict(head_dim=8, query_pre_attn_scalar=12, sliding_window=6,
                              attn_logit_softcapping=0.5, final_logit_softcapping=2.0)),
    "gemma3_text": ("gemma3_text", dict(head_dim=8, query_pre_attn_scalar=12, sliding_window=6)),
    "olmo": ("olmo", {}),
    "olmo2": ("olmo2", {}),
    "olmo3": ("olmo3", dict(sliding_window=6, rope_parameters=dict(
        sliding_attention=dict(rope_type="default", rope_theta=1e4),
        full_attention=YARN))),
    "phi": ("phi", dict(num_key_value_heads=4)),
    "phi3": ("phi3", dict(sliding_window=6)),
    "phi3, longrope": ("phi3", dict(original_max_position_embeddings=8,
                                    rope_parameters=dict(
                                        rope_type="longrope", rope_theta=1e4,
                                        short_factor=[1.0, 1.1, 1.2, 1.3],
                                        long_factor=[1.0, 2.0, 3.0, 4.0]))),
    "gpt_neox": ("gpt_neox", dict(rope_parameters=dict(rope_type="default", rope_theta=1e4,
                                                       partial_rotary_factor=0.25))),
    "gpt_neox, sequential": ("gpt_neox", dict(use_parallel_residual=False)),
    "nemotron": ("nemotron", {}),
    "cohere": ("cohere", dict(logit_scale=0.25)),
    "falcon": ("falcon", {}),
    "falcon, new architecture": ("falcon", dict(new_decoder_architecture=True, num_kv_heads=2,
                                                bias=True)),
    "granite": ("granite", dict(embedding_multiplier=3.0, logits_scaling=2.0,
                                residual_multiplier=0.7, attention_multiplier=0.2)),
    "glm4": ("glm4", dict(head_dim=8)),
    "opt": ("opt", dict(ffn_dim=48, word_embed_proj_dim=32, dropout=0)),
    "starcoder2": ("starcoder2", dict(sliding_window=6)),
    "smollm3": ("smollm3", {}),
    "llama4_text": ("llama4_text", LLAMA4),
    "llama4_text, dense layers": ("llama4_text", dict(
        LLAMA4, num_experts_per_tok=2, interleave_moe_layer_step=2, use_qk_norm=False,
        no_rope_layers=[1, 1, 0, 1], attention_bias=True)),
}


def make_model(name):
    model_type, settings = MODELS[name]
    keys = dict(settings) if model_type == "gpt2" else dict(COMMON, **settings)
    config = CONFIG_MAPPING[model_type](**keys)
    config._attn_implementation = config._experts_implementation = "eager"
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():  # biases, sinks and norms that are not constant, and visible weights
        for key, value in model.named_parameters():
            value.add_(torch.randn_like(value) * (0.05 if value.dim() == 1 else 0.08))
    return model


def train(model, tokens, dtype):
    """AdamW as in `meshwright run`: learning rate 1e-3, betas 0.9 and 0.95, decay 0.1, clip 1."""
    model = model.to(dtype).train()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.95), eps=1e-8,
                                  weight_decay=0.1)
    losses = []
    for step in range(STEPS):
        starts = [(step * BATCH + i) * LENGTH for i in range(BATCH)]
        inputs = torch.tensor([tokens[s:s + LENGTH] for s in starts])
        targets = torch.tensor([tokens[s + 1:s + LENGTH + 1] for s in starts])
        logits = model(input_ids=inputs, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.to(dtype).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def run(program, folder, plan, extra=()):
    command = [program, "run", "--model", f"{folder}/config.json", "--init", folder, "--tokens",
               f"{folder}/tokens.bin", "--steps", str(STEPS), "--seq", str(LENGTH),
               "--global-batch", str(BATCH), "--micro-batch", "1", "--dtype", "fp32", "--cluster",
               "cpu-laptop", "--json", *plan.split(), *extra]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        first = (done.stderr.strip().splitlines() or ["?"])
        return None, next((line for line in first if line.startswith("error")), first[-1])
    return json.loads(done.stdout), ""


def losses_of(result):
    return [step["loss"] for step in result["steps"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("names", nargs="*", help="models (default: all)")
    parser.add_argument("--plans", default=",".join(PLANS), help="names of plans, by comma")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    generator = torch.Generator().manual_seed(3)
    count = STEPS * BATCH * LENGTH + 1
    tokens = torch.randint(0, VOCABULARY, (count,), generator=generator).tolist()
    plans = [p.strip() for p in arguments.plans.split(",")]
    if arguments.plans == ",".join(PLANS):
        plans = list(PLANS)
    print("| model | " + " | ".join(plans) + " |\n|---|" + "---|" * len(plans))
    for name in arguments.names or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                model = make_model(name)
                model.save_pretrained(folder)
                with open(f"{folder}/tokens.bin", "wb") as file:
                    file.write(b"".join(t.to_bytes(2, "little") for t in tokens))
                expected = train(model, tokens, torch.float64)
            except Exception as error:  # a model that this version of transformers cannot train
                print(f"| {name} | transformers: {str(error)[:100]!r} |", flush=True)
                continue
            cells = []
            for plan in plans:
                has_experts = re.search("moe|mixtral|deepseek|gpt_oss|llama4", MODELS[name][0])
                if plan == "ep 2" and not has_experts:
                    cells.append("–")
                    continue
                result, problem = run(arguments.program, folder, PLANS[plan])
                if result is None:
                    cells.append(problem[:80])
                    continue
                got = losses_of(result)
                worst = max(abs(a - b) / abs(b) for a, b in zip(got, expected))
                cells.append(f"{worst:.1e}")
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
