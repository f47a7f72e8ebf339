#!/usr/bin/env python3
"""Lists what every key of a transformers configuration class does in `meshwright run`.

For every family, every key of its class is changed alone. The losses of two steps of transformers in
fp64 and of `meshwright run --init` say what the key is:

    used            both losses change, and stay equal
    without effect  neither changes
    refused         meshwright stops with an error that names the key
    DIFFERENT       anything else

The table is read by tests/models/families/config_keys_test.cpp, which checks the loader against it.

    /tmp/hf/bin/python tests/validation/transformers_keys.py build/release/bin/meshwright [family …] \
        > tests/validation/transformers_keys.md
"""
import argparse
import copy
import dataclasses
import json
import math
import sys
import tempfile

import torch
import transformers
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import transformers_losses as base

STEPS = 2
TOLERANCE = 2e-6  # relative; fp32 against fp64
# Other values of keys whose type does not say which.
CHANGES = {
    "hidden_act": "gelu_new", "hidden_activation": "gelu", "activation_function": "gelu",
    "activation": "gelu_pytorch_tanh", "rope_parameters": {"rope_type": "linear", "factor": 3.0,
                                                           "rope_theta": 5000.0},
    "topk_method": "greedy", "layer_types": ["sliding_attention", "full_attention"] * 2,
    "pad_token_id": 31, "bos_token_id": 5, "eos_token_id": 6, "tokenizer_class": "GPT2Tokenizer",
    "no_rope_layers": [1, 0, 1, 1],
    "mlp_only_layers": [1], "architectures": ["OtherForCausalLM"], "dtype": "bfloat16", "q_lora_rank": 16, "sliding_window": 4, "n_inner": 40,
    "ffn_hidden_size": 40, "num_ln_in_parallel_attn": 2, "num_kv_heads": 4, "clip_qkv": 0.1,
    "n_group": 1, "head_dim": 16, "num_key_value_heads": 4, "num_attention_heads": 2, "n_head": 2,
    "attn_logit_softcapping": 1.0, "final_logit_softcapping": 1.0, "vocab_size": 128,
    "use_bidirectional_attention": True, "word_embed_proj_dim": 16, "max_window_layers": 1,
    "summary_type": "mean", "summary_activation": "tanh", "num_experts_per_tok": 1,
    "num_local_experts": 8, "num_experts": 8, "n_routed_experts": 8, "topk_group": 2,
    "hidden_size": 48, "n_embd": 48, "layer_norm_eps": 1e-2, "rms_norm_eps": 1e-2, "layer_norm_epsilon": 1e-2, "norm_eps": 1e-2,
    "norm_epsilon": 1e-2, "no_rope_layer_interval": 2, "decoder_sparse_step": 2,
    "original_max_position_embeddings": 32, "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 32, "swiglu_limit": 0.02, "swiglu_alpha": 1.0,
    "attention_chunk_size": 3, "moe_layers": [1, 2], "intermediate_size_mlp": 40,
    "chunk_size_feed_forward": 4, "layerdrop": 0.5,
}
SECOND_CHANGES = {"num_key_value_heads": 2, "num_experts_per_tok": 2, "n_routed_experts": 4, "topk_group": 1,
                  "hidden_act": "gelu"}
SPECIAL = {("gpt_neox", "hidden_size"): 64,  # a quarter of 12 elements cannot be rotated
           ("llama4_text", "layer_types"): ["chunked_attention", "full_attention"] * 2}
RANDOM = {"dropout", "pdrop", "layerdrop", "jitter"}  # losses with noise are not compared
INITIAL = {"initializer_range", "init_std"}


HEADER = """# Keys of configuration classes

What each key of a `transformers` configuration class does in `meshwright run`, printed by `transformers_keys.py`
(transformers {}, torch {}): each key is changed alone, starting from the settings below the name of the
family. *used*: the losses change as those of transformers in fp64 (*random*: dropout; *initial values*: not with
`--init`); *without effect*: both stay; *refused*: an error that names the key."""


def changed(key, value):
    if key in CHANGES:
        return copy.deepcopy(CHANGES[key] if CHANGES[key] != value else SECOND_CHANGES.get(key))
    if isinstance(value, bool):
        return not value
    if any(word in key for word in RANDOM):
        return 0.25
    if isinstance(value, int):
        return value + 8 if "size" in key or "dim" in key or "rank" in key else value + 1
    if isinstance(value, float):
        return 2 * value + 0.1
    return None


def losses(program, model_type, settings):
    """Of transformers and of meshwright; the message instead of the latter if it refuses."""
    config = CONFIG_MAPPING[model_type](**settings)
    config._attn_implementation = config._experts_implementation = "eager"
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(config)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.randn(value.shape, generator=generator) * 0.3)
    tokens = torch.randint(0, base.VOCABULARY, (STEPS * base.BATCH * base.LENGTH + 1,),
                           generator=torch.Generator().manual_seed(3)).tolist()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        with open(f"{folder}/tokens.bin", "wb") as file:
            file.write(b"".join(t.to_bytes(2, "little") for t in tokens))
        expected = base.train(model, tokens, torch.float64)
        result, problem = base.run(program, folder, base.PLANS["1 rank"])
        return expected, base.losses_of(result) if result else problem


def close(a, b):
    return all(abs(x - y) <= TOLERANCE * abs(y) for x, y in zip(a, b))


def verdict(program, model_type, settings, before, key, value):
    try:
        other = copy.deepcopy(dict(settings, **{key: value}))
        expected, got = losses(program, model_type, other)
    except Exception as error:  # pylint: disable=broad-except
        return f"transformers refuses this value ({type(error).__name__})"
    if any(math.isnan(loss) for loss in expected):
        return "transformers computes nan"
    if isinstance(got, str):
        return "refused" if key in got or "is not supported" in got else f"DIFFERENT: {got[:90]}"
    if any(word in key for word in RANDOM):
        return "used (random)" if got != before[1] else "without effect"
    if key in INITIAL:
        return "used (initial values)"
    if not close(got, expected):
        return f"DIFFERENT: {expected} {got}"
    return "without effect" if close(expected, before[0]) else "used"


def print_family(program, model_type, settings):
    """Returns the number of keys that differ."""
    shared = {f.name for f in dataclasses.fields(transformers.PreTrainedConfig)}
    wrong = 0
    before = losses(program, model_type, settings)
    print(f"\n## {model_type}\n\n`{json.dumps(settings)}`\n\n| key | effect |\n|---|---|", flush=True)
    for field in dataclasses.fields(CONFIG_MAPPING[model_type]):
        if field.name in shared and field.name not in settings and model_type != "llama":
            continue
        value = settings.get(field.name, field.default)
        other = SPECIAL.get((model_type, field.name)) or changed(
            field.name, None if value is dataclasses.MISSING else value)
        if other is None or other == value:
            continue
        said = verdict(program, model_type, settings, before, field.name, other)
        wrong += said.startswith("DIFFERENT")
        print(f"| {field.name} = {json.dumps(other)} | {said} |", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("families", nargs="*")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    base.STEPS = STEPS
    print(HEADER.format(transformers.__version__, torch.__version__))
    wrong = 0
    for name, (model_type, special) in base.MODELS.items():
        if name == model_type and (not arguments.families or name in arguments.families):
            settings = dict(special) if model_type == "gpt2" else dict(base.COMMON, **special)
            wrong += print_family(arguments.program, model_type, settings)
    print(f"\n{wrong} keys differ.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
