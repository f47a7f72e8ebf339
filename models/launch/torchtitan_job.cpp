#include <fmt/format.h>

#include <array>

#include "models/families/load_model.hpp"
#include "models/launch/export_formats.hpp"
#include "models/launch/launch_settings.hpp"
#include "models/launch/megatron.hpp"
#include "models/launch/torchtitan.hpp"
#include "models/load/load.hpp"

namespace meshwright {
namespace {

constexpr std::array kFlavors{TorchtitanFlavor{"llama3", "8B", "llama-3.1-8b"},
                              TorchtitanFlavor{"llama3", "70B", "llama-3.1-70b"},
                              TorchtitanFlavor{"llama3", "405B", "llama-3.1-405b"},
                              TorchtitanFlavor{"qwen3", "0.6B", "qwen3-0.6b"},
                              TorchtitanFlavor{"qwen3", "8B", "qwen3-8b"},
                              TorchtitanFlavor{"qwen3", "30B-A3B", "qwen3-30b-a3b"},
                              TorchtitanFlavor{"qwen3", "235B-A22B", "qwen3-235b-a22b"},
                              TorchtitanFlavor{"deepseek_v3", "236B", "deepseek-v2"},
                              TorchtitanFlavor{"deepseek_v3", "671B", "deepseek-v3"},
                              TorchtitanFlavor{"gpt_oss", "20b", "gpt-oss-20b"}};

bool has_same_layers(const ModelGraph& a, const ModelGraph& b) {
  return a.layers == b.layers && a.operators == b.operators && a.tensors == b.tensors &&
         a.tied_embeddings == b.tied_embeddings;
}

/// Gated, RMS-normalized, without biases: what torchtitan's llama3 can be.
bool is_llama_like(const TransformerConfig& c) {
  const AttentionConfig& a = c.attention;
  return !a.latent && a.rotary && !a.rotated_size && !a.projection_bias && !a.output_bias &&
         a.query_key_norm == QueryKeyNorm::kNone && !a.sinks && c.experts.experts == 0 &&
         !c.tied_embeddings && c.norm.kind == NormKind::kRmsNorm && c.norm.offset == 0 &&
         c.block == BlockKind::kBefore && has_plain_factors(c) &&
         c.feed_forward.activation == ActivationKind::kSwiGlu && !c.feed_forward.bias &&
         a.head_size * a.heads == c.hidden && !c.layers.front().window && c.layers.front().rotary;
}

/// torchtitan's width is 8/3 of the hidden size, times ffn_dim_multiplier, rounded up to
/// `multiple_of`; with the width itself as multiple, half of it or more becomes the width.
std::string llama_arguments(const LaunchModel& model) {
  const TransformerConfig& c = model.shape;
  const std::int64_t natural = 8 * c.hidden / 3;
  std::string text =
      fmt::format("dim={}, n_layers={}, n_heads={}, n_kv_heads={}, vocab_size={}, multiple_of={}",
                  c.hidden, c.layers.size(), c.attention.heads, c.attention.key_value_heads,
                  c.vocabulary, c.feed_forward.width);
  if (natural > c.feed_forward.width)
    text += fmt::format(
        ", ffn_dim_multiplier={:.3f}",
        0.75 * static_cast<double>(c.feed_forward.width) / static_cast<double>(natural));
  if (model.rotary_base) text += fmt::format(", rope_theta={}", *model.rotary_base);
  return text;
}

/// Table [model]; a model that torchtitan does not have must be added to its sources.
std::string model_table(const LaunchModel& model, std::vector<std::string>& missing) {
  const auto table = [](std::string_view name, std::string_view flavor) {
    return fmt::format("[model]\nname = \"{}\"\nflavor = \"{}\"\n", name, flavor);
  };
  if (const TorchtitanFlavor* flavor = find_torchtitan_flavor(model.graph))
    return table(flavor->model, flavor->flavor);
  if (is_llama_like(model.shape)) {
    missing.push_back(
        fmt::format("model {} (add it to torchtitan/models/llama3/__init__.py: \"{}\": "
                    "TransformerModelArgs({}))",
                    model.name, model.name, llama_arguments(model)));
    return table("llama3", model.name);
  }
  missing.push_back(fmt::format("model {} (torchtitan has no such model)", model.name));
  return table(model.family, model.name);
}

}  // namespace

std::span<const TorchtitanFlavor> torchtitan_flavors() { return kFlavors; }

const TorchtitanFlavor* find_torchtitan_flavor(const ModelGraph& model) {
  for (const TorchtitanFlavor& flavor : kFlavors)
    if (has_same_layers(model, model_from_config(find_model(std::string(flavor.preset)))))
      return &flavor;
  return nullptr;
}

LaunchText torchtitan_job(const LaunchJob& job) {
  TorchtitanSettings settings = torchtitan_settings(job.plan);
  std::vector<std::string>& missing = settings.unsupported;
  const bool overlaps = job.plan.strategy.model_parallelism.tensor_overlap;
  const bool compiles = job.compiles || overlaps;
  std::erase_if(missing, [](const std::string& one) {
    return one.find("without torch.compile") != std::string::npos;
  });
  const std::string model = model_table(job.model, missing);
  // torchtitan/models/llama4/infra/parallelize.py: apply_moe_ep_tp().
  const ParallelDegrees& d = job.plan.strategy.degrees;
  if (job.model.shape.experts.experts > 0 && d.expert == 1 && d.expert_tensor != d.tensor)
    missing.push_back(
        fmt::format("expert-tensor-parallel size {} without expert parallelism (all tensor ranks "
                    "share experts)",
                    d.expert_tensor));
  const std::string frame = fmt::format(
      "# {}\n# torchtitan v0.2.2, on its test data for {} steps. In its folder{}:\n# {}\n{}\n",
      headline(job), kExportedSteps, job.nodes == 1 ? "" : ", on every node",
      torchrun_text(job, "-m torchtitan.train --job.config_file THIS_FILE"),
      unsupported_comments(missing));
  return {
      fmt::format("{}[job]\ndescription = \"{}\"\n\n[metrics]\nlog_freq = 1\n\n{}{}\n"
                  "[optimizer]\nname = \"AdamW\"\nlr = 1e-4\n\n[lr_scheduler]\nwarmup_steps = 2\n\n"
                  "[parallelism]\n{}\n[training]\ndataset = \"c4_test\"\nsteps = {}\n{}\n"
                  "[activation_checkpoint]\n{}\n[compile]\nenable = {}\n",
                  frame, headline(job), model, settings.quantization, settings.parallelism,
                  kExportedSteps, settings.training, settings.activation_checkpoint, compiles),
      missing};
}

}  // namespace meshwright
