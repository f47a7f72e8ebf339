/// A Plan says how to train one model on one cluster. Plain values; check_plan() judges them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster.hpp"
#include "core/data_parallelism.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/model_graph.hpp"
#include "core/model_parallelism.hpp"
#include "core/schedule.hpp"

namespace meshwright {

/// How the work is split along each axis. ranks = data * pipeline * context * tensor; the expert
/// ranks are folded into tensor * context * data of one stage (Megatron's parallel folding).
struct ParallelDegrees {
  int data = 1;           ///< replicas of the model, each with its own part of the global batch
  int pipeline = 1;       ///< devices of one pipeline
  int chunks = 1;         ///< stages per device (virtual pipeline, "vpp")
  int context = 1;        ///< parts of the sequence
  int tensor = 1;         ///< parts of every weight matrix
  int expert = 1;         ///< parts of the set of experts
  int expert_tensor = 1;  ///< parts of every expert's matrices
  friend bool operator==(const ParallelDegrees&, const ParallelDegrees&) = default;
};
constexpr std::int64_t rank_count(const ParallelDegrees& d) {
  return std::int64_t{d.data} * d.pipeline * d.context * d.tensor;
}
constexpr std::int64_t stage_count(const ParallelDegrees& d) {
  return std::int64_t{d.pipeline} * d.chunks;
}

/// Position of one rank on the grid.
struct RankCoordinate {
  int pipeline = 0, data = 0, context = 0, tensor = 0;
  friend bool operator==(const RankCoordinate&, const RankCoordinate&) = default;
};
/// Distance in ranks between neighbours along each axis, and along those of the expert ranks.
struct RankStrides {
  std::int64_t tensor = 1, context = 1, data = 1, pipeline = 1;
  std::int64_t expert_tensor = 1, expert = 1, expert_data = 1;
  std::int64_t expert_pipeline = 1;  ///< check_plan() demands that it equals `pipeline`
  friend bool operator==(const RankStrides&, const RankStrides&) = default;
};
RankStrides strides_of(const ParallelDegrees& degrees, const RankOrder& order);

/// In the default order: tensor varies fastest (stays inside a node), pipeline slowest.
RankId rank_at(const ParallelDegrees& degrees, const RankCoordinate& coordinate,
               const RankOrder& order = {});
RankCoordinate coordinate_of(const ParallelDegrees& degrees, RankId rank,
                             const RankOrder& order = {});

enum class RecomputeKind : std::uint8_t {
  kNone,
  kSelective,  ///< the attention core only (Korthikanti et al., arXiv 2205.05198, section 5)
  kFull,       ///< every block keeps its input only
  kBlocks      ///< the first `blocks` blocks of every stage as kFull, the rest as kNone
};
struct Recompute {
  RecomputeKind kind = RecomputeKind::kNone;
  int blocks = 0;  ///< for kBlocks
  friend bool operator==(const Recompute&, const Recompute&) = default;
};
/// "none", "selective", "full", "block:4".
std::string to_text(const Recompute& recompute);
std::optional<Recompute> recompute_from_text(std::string_view text);

enum class AttentionAlgorithm : std::uint8_t {
  kFlash,    ///< fused, keeps no scores (arXiv 2205.14135)
  kStandard  ///< two batched GEMMs and a softmax; scores are kept or recomputed
};
std::string_view name_of(AttentionAlgorithm algorithm);  ///< "flash", "standard"
std::optional<AttentionAlgorithm> attention_from_name(std::string_view name);

/// All that the strategy flags of the command line say (and the plan file's `strategy` object).
struct Strategy {
  ParallelDegrees degrees;
  bool sequence_parallel = false;  ///< norms and dropouts cut along the sequence over tensor ranks
  int micro_batch = 1;             ///< sequences in one micro-batch of one replica
  std::int64_t global_batch = 1;   ///< sequences in one step of the whole job
  std::int64_t sequence_length = 1;
  std::string schedule = "1f1b";  ///< a name in schedule_rules()
  Recompute recompute;
  /// Rajbhandari et al., arXiv 1910.02054. Cut over the data ranks: 0: nothing, 1: optimizer state,
  /// 2: gradients too, 3: parameters too (FSDP).
  int zero = 0;
  Dtype dtype = Dtype::kBf16;
  AttentionAlgorithm attention = AttentionAlgorithm::kFlash;
  DataParallelism data_parallelism;
  ModelParallelism model_parallelism = {};
  friend bool operator==(const Strategy&, const Strategy&) = default;
};
/// Micro-batches of one replica in one step; global_batch must divide (check_plan says so).
constexpr std::int64_t microbatch_count(const Strategy& s) {
  return s.global_batch / (std::int64_t{s.micro_batch} * s.degrees.data);
}

struct Plan {
  Strategy strategy;
  /// Blocks of the model in every stage, in stage order (stage = chunk * pipeline + device for
  /// looped schedules). Embedding belongs to the first stage, head to the last. Where two stages
  /// hold replicas of one part of the model (bidirectional schedules), one number for each part.
  std::vector<int> blocks_per_stage;
  /// The schedule's own orders, by pipeline position, where they were made to measure; empty: what
  /// the schedule's rule generates.
  std::vector<std::vector<Action>> orders = {};
  /// The device of one pipeline [0, pp) that runs each stage, where layers are placed by hand
  /// (PyTorch's `to(device)`): any number of stages, in any order, for the schedules naive and
  /// gpipe. Empty: where the schedule puts them.
  std::vector<int> device_of_stage = {};
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// The schedule that orders made for one job are filed under ("auto"): its rule says the placement.
inline constexpr std::string_view kMadeToMeasure = "auto";
/// The order of work of one pipeline. The rule of the plan's schedule must accept the plan.
Schedule schedule_of(const Plan& plan);

/// Everything wrong with the plan, each with values and a way out: degrees against model, cluster
/// and batch, the schedule's own rules, the stage cut. Empty: the plan can be lowered.
/// Whether it fits in memory is not judged here: that is simulated. `where` (a flag prefix such as
/// "--", or "x.plan.json#/strategy/") is put in front of the field's name.
std::vector<Diagnostic> check_plan(const Plan& plan, const ModelGraph& model,
                                   const Cluster& cluster, std::string_view where = "--");

}  // namespace meshwright
