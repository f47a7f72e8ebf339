#include "core/plan/strategy_text.hpp"

#include <fmt/format.h>

#include <cctype>

namespace meshwright {
namespace {

/// Data-parallel options that differ from their defaults.
std::string data_parallelism_text(const Strategy& s) {
  const DataParallelism& d = s.data_parallelism;
  std::string text;
  if (d.kind != DataParallelKind::kCollective) text += fmt::format(", {}", name_of(d.kind));
  if (has_servers(d.kind))
    text += fmt::format(" ({} {}servers)", d.servers, d.colocated_servers ? "co-located " : "");
  if (d.algorithm != CollectiveAlgorithm::kAutomatic)
    text += fmt::format(", {} all-reduce", name_of(d.algorithm));
  if (d.buckets.rule != BucketRule::kNone) text += fmt::format(", buckets {}", to_text(d.buckets));
  if (d.overlap_gather) text += ", overlapped gather";
  if (d.shard_ranks > 0) text += fmt::format(", shards of {} ranks", d.shard_ranks);
  if (d.offload_optimizer) text += ", optimizer offload";
  return text;
}

std::string fully_sharded_text(const Strategy& s) {
  const DataParallelism& d = s.data_parallelism;
  return fmt::format(" (prefetch {}{})", d.prefetch, d.reshard_after_forward ? "" : ", no reshard");
}

/// Options of the tensor and context axes that differ from their defaults.
std::string model_parallelism_text(const Strategy& s) {
  const ModelParallelism& m = s.model_parallelism;
  std::string text;
  if (m.tensor_overlap) text += ", TP overlap";
  if (s.degrees.context > 1 && m.context != ContextAlgorithm::kAllGather)
    text += fmt::format(", {} attention", name_of(m.context));
  return text;
}

std::string layer_options_text(const Strategy& s) {
  return s.layer_options.empty() ? "" : ", layers " + to_text(s.layer_options);
}

std::string batch_shares_text(const Strategy& s) {
  return s.batch_shares.empty() ? "" : ", micro-batches " + to_text(s.batch_shares);
}

/// "fp8 (mxfp8, parameters in fp8), bf16 gradients".
std::string precision_text(const Strategy& s) {
  const Precision& p = s.precision;
  std::string options;
  const auto add = [&options](const std::string& option) {
    options += (options.empty() ? "" : ", ") + option;
  };
  if (s.dtype == Dtype::kFp8) add(std::string(name_of(p.fp8_recipe)));
  if (p.fp8_parameters) add("parameters in fp8");
  if (p.wide_blocks > 0) add(fmt::format("{} layers at each end in bf16", p.wide_blocks));
  std::string text(name_of(s.dtype));
  if (!options.empty()) text += fmt::format(" ({})", options);
  if (p.gradients != Dtype::kFp32) text += fmt::format(", {} gradients", name_of(p.gradients));
  return text;
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

}  // namespace

std::string split_text(const Strategy& strategy) {
  const ParallelDegrees& d = strategy.degrees;
  std::string text;
  for (const ParallelSize& size : kDescribedSizes) {
    const int degree = d.*size.size;
    const bool is_shown = size.size != kExpertTensorSize.size || d.expert > 1;
    if (degree <= 1 || !is_shown) continue;
    if (size.size == kChunkCount.size)
      text += fmt::format("x{}", degree);
    else
      text += fmt::format("{}{}{}", text.empty() ? "" : " ", upper_case(size.key), degree);
  }
  if (strategy.sequence_parallel) text += " SP";
  return text.empty() ? "one device" : text;
}

std::string schedule_text(const Strategy& strategy) {
  const bool matters = strategy.degrees.pipeline > 1 || strategy.schedule != kDefaultSchedule;
  return matters ? strategy.schedule : "-";
}

std::string options_text(const Strategy& s) {
  const DataParallelism& d = s.data_parallelism;
  std::string text = data_parallelism_text(s) + model_parallelism_text(s);
  if (s.zero == 3 && d.prefetch != DataParallelism{}.prefetch)
    text += fmt::format(", prefetch {}", d.prefetch);
  if (s.zero == 3 && !d.reshard_after_forward) text += ", no reshard";
  text += layer_options_text(s) + batch_shares_text(s);
  return text.empty() ? text : text.substr(std::string_view(", ").size());
}

std::string strategy_text(const Strategy& s) {
  std::string text = split_text(s);
  if (s.degrees.pipeline > 1 || s.schedule != kDefaultSchedule)
    text += fmt::format(", {}", s.schedule);
  text += fmt::format(", micro-batch {}, recompute {}", s.micro_batch, to_text(s.recompute));
  if (s.zero > 0) text += fmt::format(", ZeRO {}", s.zero);
  if (s.zero == 3) text += fully_sharded_text(s);
  text += data_parallelism_text(s) + model_parallelism_text(s) + layer_options_text(s) +
          batch_shares_text(s);
  if (s.optimizer != OptimizerKind::kAdamW) text += fmt::format(", {}", name_of(s.optimizer));
  return text + fmt::format(", {}, {} attention", precision_text(s), name_of(s.attention));
}

}  // namespace meshwright
