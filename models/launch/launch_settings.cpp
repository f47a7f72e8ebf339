#include "models/launch/launch_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace meshwright {

std::string to_text(const LaunchFlag& flag) {
  if (flag.value.empty()) return "--" + flag.name;
  const bool is_quoted = flag.value.find_first_of("|()[]*") != std::string::npos;
  const std::string_view quote = is_quoted ? "\"" : "";
  return fmt::format("--{} {}{}{}", flag.name, quote, flag.value, quote);
}

std::vector<std::string> unsupported_settings(const Plan& plan, KnownBuckets known) {
  std::vector<std::string> notes;
  const DataParallelism& d = plan.strategy.data_parallelism;
  if (d.kind != DataParallelKind::kCollective)
    notes.push_back(
        fmt::format("data parallelism '{}' (collectives are used instead)", name_of(d.kind)));
  if (const OptimizerKind optimizer = plan.strategy.optimizer; optimizer != OptimizerKind::kAdamW)
    notes.push_back(fmt::format("optimizer '{}' (AdamW is used instead)", name_of(optimizer)));
  if (!plan.device_of_stage.empty()) notes.emplace_back("manual stage placement");
  const BucketRule rule = d.buckets.rule;
  const bool is_known = rule == known.own || (rule == BucketRule::kBytes && known.sized);
  if (rule != BucketRule::kNone && !is_known)
    notes.push_back(
        fmt::format("gradient buckets {} (its own bucket size is used)", to_text(d.buckets)));
  const ExpertRouting& routing = plan.strategy.model_parallelism.routing;
  if (routing.fp8_dispatch) notes.emplace_back("fp8 dispatch of tokens to experts");
  if (routing.node_limit > 0)
    notes.push_back(fmt::format("expert node limit {} (limit groups of experts in the router)",
                                routing.node_limit));
  return notes;
}

std::int64_t bucket_elements(const Strategy& s) {
  return s.data_parallelism.buckets.bytes.value / bytes_per_element(s.precision.gradients);
}

bool is_even(const Plan& plan) {
  const std::vector<int>& blocks = plan.blocks_per_stage;
  return std::adjacent_find(blocks.begin(), blocks.end(), std::not_equal_to<>()) == blocks.end();
}

int layer_count(const Plan& plan) {
  return std::accumulate(plan.blocks_per_stage.begin(), plan.blocks_per_stage.end(), 0);
}

}  // namespace meshwright
