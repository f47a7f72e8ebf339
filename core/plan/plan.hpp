/// A Plan describes how to train one model on one cluster. Plain values, validated by check_plan().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/base/error.hpp"
#include "core/base/ids.hpp"
#include "core/cluster/cluster.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/batch_shares.hpp"
#include "core/plan/data_parallelism.hpp"
#include "core/plan/layer_options.hpp"
#include "core/plan/model_parallelism.hpp"
#include "core/plan/optimizer.hpp"
#include "core/plan/parallel_sizes.hpp"
#include "core/plan/precision.hpp"
#include "core/plan/recompute.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

enum class AttentionAlgorithm : std::uint8_t {
  kFlash,    ///< fused, does not save scores (arXiv 2205.14135)
  kStandard  ///< two batched GEMMs and a softmax; scores are saved or recomputed
};
inline constexpr int kAttentionAlgorithmCount = 2;
std::string_view name_of(AttentionAlgorithm algorithm);  ///< "flash", "standard"
std::optional<AttentionAlgorithm> attention_from_name(std::string_view name);

/// The strategy flags of the command line, and the `strategy` object of a plan file.
struct Strategy {
  ParallelDegrees degrees;
  bool sequence_parallel = false;  ///< shard norms and dropouts by sequence over tensor ranks
  int micro_batch = 1;             ///< sequences per micro-batch of one replica
  std::int64_t global_batch = 1;   ///< sequences per step of the whole job
  std::int64_t sequence_length = 1;
  std::string schedule{kDefaultSchedule};  ///< a name in schedule_rules()
  Recompute recompute;
  /// ZeRO stage (Rajbhandari et al., arXiv 1910.02054): sharded over the data ranks are 0: nothing,
  /// 1: optimizer state, 2: also gradients, 3: also parameters (FSDP).
  int zero = 0;
  Dtype dtype = Dtype::kBf16;
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  AttentionAlgorithm attention = AttentionAlgorithm::kFlash;
  DataParallelism data_parallelism;
  ModelParallelism model_parallelism = {};
  Precision precision = {};
  LayerOptions layer_options = {};
  BatchShares batch_shares = {};
  friend bool operator==(const Strategy&, const Strategy&) = default;
};
/// True if the tensor ranks share the tokens of the block instead of its weights; see LayerOptions.
bool shares_tokens(const Strategy& strategy, int block);
/// The strategy of a block: that of the plan with the block's options. If its tensor ranks share
/// the tokens, they are context ranks that exchange heads.
Strategy strategy_of_block(const Strategy& strategy, int block);
/// Selective recomputation repeats attention on materialized scores; fused attention recomputes its
/// scores anyway.
constexpr bool repeats_attention(const Strategy& s) {
  return s.recompute.kind == RecomputeKind::kSelective &&
         s.attention == AttentionAlgorithm::kStandard;
}
/// Micro-batches per step of a data-parallel rank, the most if they differ; check_plan() ensures
/// that the division is exact. With unequal shares, a rank that runs fewer than these runs the last
/// ones of the schedule.
inline std::int64_t microbatch_count(const Strategy& s) {
  return s.batch_shares.empty() ? s.global_batch / (std::int64_t{s.micro_batch} * s.degrees.data)
                                : most_microbatches(s.batch_shares);
}
/// Where the share of a data-parallel rank begins.
struct ShareStart {
  std::int64_t microbatch = 0;  ///< its first one in the schedule
  std::int64_t sequence = 0;    ///< of the global batch
};
ShareStart share_start_of(const Strategy& strategy, int data_rank);
/// Parallel sizes above 1 and options of the axes beyond their defaults: how far a plan is from
/// plain training on one device.
inline int feature_count(const Strategy& s) {
  int count = 0;
  for (const ParallelSize& size : kParallelSizes) count += s.degrees.*size.size > 1 ? 1 : 0;
  const DataParallelism& data = s.data_parallelism;
  for (const bool used :
       {s.model_parallelism.tensor_overlap,
        s.model_parallelism.context != ContextAlgorithm::kAllGather, data.overlap_gather,
        data.shard_ranks > 0, !data.reshard_after_forward, data.offload_optimizer,
        data.buckets.rule != BucketRule::kNone, !s.batch_shares.empty()})
    count += used ? 1 : 0;
  return count;
}

struct Plan {
  Strategy strategy;
  /// Number of blocks per stage, in stage order (stage = chunk * pipeline + device for looped
  /// schedules). The embedding belongs to the first stage, the head to the last. For bidirectional
  /// schedules, where two stages hold replicas of one model part, one number per part.
  std::vector<int> blocks_per_stage;
  /// Synthesized order of each pipeline rank (schedule "auto"); empty: the order comes from the
  /// schedule's generator.
  std::vector<std::vector<Action>> orders = {};
  /// Manual stage placement (PyTorch's `to(device)`): the pipeline rank in [0, pp) of each stage.
  /// Any number of stages in any order; schedules naive and gpipe only. Empty: placed by the
  /// schedule.
  std::vector<int> device_of_stage = {};
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Name of the schedule whose orders are synthesized for one job; its rule defines the placement.
inline constexpr std::string_view kSynthesizedSchedule = "auto";
/// The schedule of one pipeline. The rule of the plan's schedule must accept the plan.
Schedule schedule_of(const Plan& plan);

/// Reports all problems of a plan: parallel sizes against model, cluster and batch, the rules of
/// the schedule, the blocks per stage. Empty if the plan can be lowered. Memory is not checked; it
/// requires a simulation. `where` is "--" to name command-line flags, or the prefix of JSON
/// pointers into the plan file: "x.plan.json#/".
std::vector<Diagnostic> check_plan(const Plan& plan, const ModelGraph& model,
                                   const Cluster& cluster, std::string_view where = "--");

/// True if lower() may split passes into several tasks or add buffers to them, so that the works of
/// lower_stages() differ from the tasks of the plan.
constexpr bool cuts_passes(int zero, const DataParallelism& data) {
  return zero >= 2 || data.buckets.rule != BucketRule::kNone || data.overlap_gather ||
         has_servers(data.kind) || data.kind == DataParallelKind::kOneProcess;
}
constexpr bool cuts_passes(const Strategy& strategy) {
  return cuts_passes(strategy.zero, strategy.data_parallelism);
}

}  // namespace meshwright
