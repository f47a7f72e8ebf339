#include "core/plan/plan.hpp"

#include "core/base/check.hpp"
#include "core/base/value_named.hpp"

namespace meshwright {

std::string_view name_of(AttentionAlgorithm algorithm) {
  return algorithm == AttentionAlgorithm::kFlash ? "flash" : "standard";
}

std::optional<AttentionAlgorithm> attention_from_name(std::string_view name) {
  return value_named<AttentionAlgorithm>(name, kAttentionAlgorithmCount);
}

bool shares_tokens(const Strategy& strategy, int block) {
  const int* tensor = value_of_block(strategy.layer_options.tensor, block);
  return tensor != nullptr && *tensor < strategy.degrees.tensor;
}

Strategy strategy_of_block(const Strategy& strategy, int block) {
  Strategy s = strategy;
  const LayerOptions& options = strategy.layer_options;
  if (const Recompute* recompute = value_of_block(options.recompute, block))
    s.recompute = *recompute;
  if (const bool* reshard = value_of_block(options.reshard_after_forward, block))
    s.data_parallelism.reshard_after_forward = *reshard;
  if (shares_tokens(strategy, block)) {
    s.degrees.context = s.degrees.tensor;
    s.degrees.tensor = 1;
    s.sequence_parallel = s.model_parallelism.tensor_overlap = false;
    s.model_parallelism.context = ContextAlgorithm::kAllToAll;
  }
  s.layer_options = {};
  return s;
}

ShareStart share_start_of(const Strategy& strategy, int data_rank) {
  const std::int64_t most = microbatch_count(strategy);
  if (strategy.batch_shares.empty()) return {0, data_rank * most * strategy.micro_batch};
  std::int64_t before = 0;  // micro-batches of earlier ranks
  for (const BatchShare& share : strategy.batch_shares) {
    if (data_rank <= share.last)
      return {most - share.microbatches,
              (before + std::int64_t{data_rank - share.first} * share.microbatches) *
                  strategy.micro_batch};
    before += std::int64_t{share.last - share.first + 1} * share.microbatches;
  }
  MW_CHECK(false);
}

}  // namespace meshwright
