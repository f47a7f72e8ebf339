#include "tests/properties/random_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "core/operators/recompute_operators.hpp"
#include "core/plan/placement.hpp"
#include "core/plan/plan_numbers.hpp"
#include "core/plan/strategy_text.hpp"
#include "core/plan/weight_versions.hpp"

namespace meshwright {
namespace {

class PlanDraw {
 public:
  PlanDraw(const ModelGraph& model, const Cluster& cluster, Choices& choices,
           const JobLimits& limits)
      : model_(model),
        traits_(traits_of(model)),
        cluster_(cluster),
        choices_(choices),
        limits_(limits) {}

  Plan draw() {
    draw_sizes();
    draw_numbers();
    draw_memory();
    draw_data_parallelism();
    draw_model_parallelism();
    draw_schedule();
    if (choices_.one_in(10))
      make_plain();
    else if (!choices_.one_in(8))
      make_compatible();
    draw_batch();
    if (limits_.has_senseless_numbers && choices_.one_in(4)) spoil_a_number();
    draw_stages();
    if (choices_.one_in(10)) draw_layer_options();
    if (choices_.one_in(10)) draw_batch_shares();
    return std::move(plan_);
  }

 private:
  void draw_sizes() {
    ParallelDegrees& d = s_.degrees;
    d.tensor = choices_.one_of({1, 1, 2, 2, 4, 8});
    d.pipeline = choices_.one_of({1, 2, 2, 3, 4, 8});
    d.context = choices_.one_of({1, 1, 1, 2, 4});
    d.data = choices_.one_of({1, 1, 2, 2, 3, 4, 8});
    const int ranks = std::min(limits_.ranks, device_count(cluster_));
    for (int* const size : {&d.context, &d.data, &d.tensor, &d.pipeline})
      if (rank_count(d) > ranks) *size = 1;
    if (!traits_.experts) return;
    d.expert = choices_.one_of({1, 2, 4, 8});
    d.expert_tensor = choices_.one_of({1, 1, 2, d.tensor});
    if (stage_rank_count(d) % (std::int64_t{d.expert} * d.expert_tensor) != 0) {
      d.expert_tensor = 1;
      d.expert = std::gcd(d.expert, static_cast<int>(stage_rank_count(d)));
    }
  }

  void draw_numbers() {
    s_.sequence_parallel = s_.degrees.tensor > 1 && choices_.one_in(2);
    s_.sequence_length = choices_.one_of({512, 1024, 2048, 96});
    if (model_.longest_sequence > 0)
      s_.sequence_length = std::min(s_.sequence_length, model_.longest_sequence);
    s_.dtype =
        choices_.one_of({Dtype::kBf16, Dtype::kBf16, Dtype::kBf16, Dtype::kFp16, Dtype::kFp32,
                         Dtype::kTf32, Dtype::kFp8, Dtype::kFp8, Dtype::kNvfp4});
    const NodeModel& node = node_of(cluster_, DeviceId(0));
    if (!cluster_.devices.at(node.device).peak[static_cast<std::size_t>(s_.dtype)])
      s_.dtype = choices_.one_of({Dtype::kFp16, Dtype::kFp32});
    s_.optimizer = choices_.one_of(
        {OptimizerKind::kAdamW, OptimizerKind::kAdamW, OptimizerKind::kSgd, OptimizerKind::kMuon});
    if (choices_.one_in(4)) s_.attention = AttentionAlgorithm::kStandard;
    Precision& p = s_.precision;
    if (bytes_per_element(storage_dtype(s_.dtype)) == 2 && choices_.one_in(3))
      p.gradients = storage_dtype(s_.dtype);
    if (is_quantized(s_.dtype)) p.wide_blocks = choices_.one_of({0, 0, 1, 2});
    if (s_.dtype != Dtype::kFp8) return;
    p.fp8_recipe = choices_.one_of(
        {Fp8Recipe::kDelayed, Fp8Recipe::kTensorwise, Fp8Recipe::kBlockwise, Fp8Recipe::kMxfp8});
    p.fp8_parameters = choices_.one_in(3);
  }

  void draw_memory() {
    Recompute& r = s_.recompute;
    r.kind = choices_.one_of({RecomputeKind::kNone, RecomputeKind::kNone, RecomputeKind::kSelective,
                              RecomputeKind::kFull, RecomputeKind::kBlocks, RecomputeKind::kModules,
                              RecomputeKind::kTorchSelective});
    if (r.kind == RecomputeKind::kBlocks) r.blocks = choices_.between(0, 3);
    if (r.kind != RecomputeKind::kModules) return;
    for (int m = 0; m < kRecomputeModuleCount; ++m)
      if (has_module(model_, static_cast<RecomputeModule>(m)) && choices_.one_in(2))
        r.modules |= 1U << static_cast<unsigned>(m);
    if (r.modules == 0) r.modules = 1U;
  }

  /// Of some blocks from the first to the last.
  void draw_layer_options() {
    LayerOptions& options = s_.layer_options;
    const bool can_share_tokens =
        s_.sequence_parallel && s_.degrees.context == 1 && s_.optimizer != OptimizerKind::kMuon;
    for (int block = 0; block < traits_.blocks; ++block) {
      const int last = std::min(traits_.blocks - 1, block + choices_.between(0, 2));
      if (choices_.one_in(2))
        options.recompute.push_back(
            {block, last,
             choices_.one_of<Recompute>({{},
                                         {RecomputeKind::kSelective},
                                         {RecomputeKind::kFull},
                                         {.kind = RecomputeKind::kModules, .modules = 1U << 1U},
                                         {RecomputeKind::kTorchSelective}})});
      if (can_share_tokens && choices_.one_in(2))
        options.tensor.push_back({block, last, choices_.one_of({1, 1, s_.degrees.tensor})});
      if (s_.zero == 3 && choices_.one_in(2))
        options.reshard_after_forward.push_back({block, last, choices_.one_in(2)});
      block = last;
    }
  }

  /// Of every data-parallel rank, up to the micro-batches of the schedule.
  void draw_batch_shares() {
    const int data = s_.degrees.data;
    if (std::min(data, s_.micro_batch) < 1 || data > limits_.ranks) return;
    std::vector<int> counts(static_cast<std::size_t>(data), microbatches_);
    for (std::size_t i = 1; i < counts.size(); ++i)
      if (choices_.one_in(2)) counts[i] = choices_.between(1, microbatches_);
    s_.batch_shares = shares_of(counts);
    s_.global_batch = saturating_product({total_microbatches(s_.batch_shares), s_.micro_batch});
    if (choices_.one_in(8)) return;
    s_.zero = std::min(s_.zero, 1);
    s_.degrees.expert = 1;
    s_.degrees.expert_tensor = std::min(s_.degrees.expert_tensor, s_.degrees.tensor);
    s_.data_parallelism.kind = DataParallelKind::kCollective;
    s_.data_parallelism.overlap_gather = false;
    s_.data_parallelism.shard_ranks = 0;
  }

  void draw_data_parallelism() {
    DataParallelism& d = s_.data_parallelism;
    using enum DataParallelKind;
    d.kind = choices_.one_of({kCollective, kCollective, kCollective, kCollective, kCollective,
                              kRing, kRing, kParameterServer, kAsyncParameterServer, kOneProcess});
    s_.zero = choices_.one_of({0, 0, 1, 2, 3});
    d.algorithm = choices_.one_of({CollectiveAlgorithm::kAutomatic, CollectiveAlgorithm::kAutomatic,
                                   CollectiveAlgorithm::kAutomatic, CollectiveAlgorithm::kRing,
                                   CollectiveAlgorithm::kTree, CollectiveAlgorithm::kHierarchical});
    if (choices_.one_in(8)) d.algorithm = CollectiveAlgorithm::kNvls;
    if (s_.zero < 3 && choices_.one_in(2))
      d.buckets = *buckets_from_text(
          choices_.one_of<const char*>({"pytorch", "megatron", "64MiB", "1000000"}));
    const bool has_buckets = d.buckets.rule != BucketRule::kNone;
    d.overlap_gather = (s_.zero == 2 || (s_.zero == 1 && has_buckets)) && choices_.one_in(2);
    if (s_.zero == 3) {
      d.prefetch = choices_.one_of({1, 0, 2, 5});
      d.reshard_after_forward = !choices_.one_in(2);
    }
    if (s_.zero > 0 && s_.degrees.data > 2 && choices_.one_in(2))
      d.shard_ranks = choices_.one_of({2, 3, 4});
    d.offload_optimizer = node_of(cluster_, DeviceId(0)).host && choices_.one_in(6);
    d.ring_order = choices_.one_of({RingOrder::kNeighbors, RingOrder::kAlternating});
    if (has_servers(d.kind)) d.servers = choices_.one_of({1, 2});
    d.colocated_servers = has_servers(d.kind) && choices_.one_in(2);
  }

  void draw_model_parallelism() {
    ModelParallelism& m = s_.model_parallelism;
    m.tensor_overlap = s_.sequence_parallel && choices_.one_in(2);
    m.context = choices_.one_of(
        {ContextAlgorithm::kAllGather, ContextAlgorithm::kRing, ContextAlgorithm::kAllToAll});
    if (choices_.one_in(3))
      m.order = *rank_order_from_text(
          choices_.one_of<const char*>({"cp-tp-ep-dp-pp", "dp-cp-ep-tp-pp", "pp-tp-cp-ep-dp",
                                        "tp-cp-ep-pp-dp", "ep-tp-dp-cp-pp", "tp-pp-cp-ep-dp"}));
    if (!traits_.experts) return;
    ExpertRouting& routing = m.routing;
    switch (choices_.below(3)) {
      case 1:
        routing.capacity = choices_.one_of({0.5, 1.0, 1.25});
        break;
      case 2:
        routing.imbalance = choices_.one_of({1.1, 1.5});
        break;
      default:
        break;
    }
    routing.fp8_dispatch = choices_.one_in(3);
    if (choices_.one_in(4)) routing.node_limit = choices_.one_of({2, 4});
    routing.overlap = choices_.one_in(4);
  }

  // ---- schedule ---------------------------------------------------------------------------------

  void draw_schedule() {
    const ScheduleRule& rule = choices_.one_of(schedule_rules());
    if (!choices_.one_in(3)) s_.schedule = rule.name;
    microbatches_ = choices_.between(1, limits_.microbatches);
    const ScheduleRule* chosen = find_schedule_rule(s_.schedule);
    for (int tries = 0; tries < 6; ++tries) {
      ScheduleRequest request;
      request.devices = s_.degrees.pipeline;
      request.chunks = s_.degrees.chunks = choices_.one_of({1, 2, 1, 2, 4, 3});
      request.microbatches = microbatches_;
      if (!chosen->problem(request)) return;
      microbatches_ =
          std::min(limits_.microbatches, s_.degrees.pipeline * choices_.one_of({2, 1, 3}));
    }
  }

  /// Drops what some kinds of data parallelism and some schedules cannot be combined with, so that
  /// most plans are valid.
  void make_compatible() {
    DataParallelism& data = s_.data_parallelism;
    const bool is_plain = has_servers(data.kind) || data.kind == DataParallelKind::kOneProcess;
    const ScheduleRule& rule = *find_schedule_rule(s_.schedule);
    const bool has_no_flush = updates_without_flush(s_);
    if (is_plain) {
      s_.degrees = {.data = std::max(2, s_.degrees.data)};
      s_.schedule = kDefaultSchedule;
    }
    if (has_no_flush) s_.degrees = {.data = s_.degrees.data, .pipeline = s_.degrees.pipeline};
    if (s_.degrees.tensor == 1) s_.sequence_parallel = s_.model_parallelism.tensor_overlap = false;
    if (is_plain || has_no_flush || rule.output_barriers > 0) {
      s_.zero = is_plain || has_no_flush ? 0 : s_.zero % 2;
      const DataParallelism drawn = std::exchange(data, {});
      if (!has_no_flush || !is_plain) data.kind = drawn.kind;
      data.ring_order = drawn.ring_order;
      data.servers = drawn.servers;
      data.colocated_servers = drawn.colocated_servers;
      if (is_plain) s_.precision.gradients = Dtype::kFp32;
    }
    if (s_.model_parallelism.routing.overlap && s_.degrees.pipeline > 1)
      s_.schedule = "interleaved-1f1b";
    if (data.kind == DataParallelKind::kRing) data.algorithm = CollectiveAlgorithm::kAutomatic;
    if (s_.model_parallelism.context == ContextAlgorithm::kRing && s_.degrees.context > 1)
      s_.attention = AttentionAlgorithm::kFlash;
  }

  /// As most training programs can run it.
  void make_plain() {
    Strategy plain;
    plain.degrees = s_.degrees;
    plain.degrees.chunks = plain.degrees.context = 1;
    plain.sequence_length = s_.sequence_length;
    plain.dtype = is_quantized(s_.dtype) ? Dtype::kFp16 : s_.dtype;
    plain.zero = s_.zero % 2;
    plain.attention = choices_.one_of({AttentionAlgorithm::kFlash, AttentionAlgorithm::kStandard});
    s_ = plain;
  }

  void draw_batch() {
    s_.micro_batch = choices_.one_of({1, 1, 2, 4});
    s_.global_batch = std::int64_t{s_.micro_batch} * s_.degrees.data * microbatches_;
  }

  /// Sets a number to zero, a negative one, or one so large that products overflow.
  void spoil_a_number() {
    constexpr int kLongSequence = 1 << 17;
    constexpr std::int64_t kFarTooMany = std::int64_t{1} << 60;
    const int value = choices_.one_of(
        {0, -1, 5, 63, 65'536, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()});
    const std::size_t which = choices_.below(3 * kParallelSizes.size());
    DataParallelism& data = s_.data_parallelism;
    const std::array others{&s_.micro_batch,   &s_.zero,
                            &data.shard_ranks, &data.servers,
                            &data.prefetch,    &s_.model_parallelism.routing.node_limit};
    if (which < kParallelSizes.size())
      s_.degrees.*kParallelSizes[which].size = value;
    else if (which < 2 * kParallelSizes.size())
      *others[which % others.size()] = value;
    else if (choices_.one_in(3))
      s_.recompute = {.kind = RecomputeKind::kBlocks, .blocks = value};
    else if (choices_.one_in(2))
      s_.global_batch = kFarTooMany;
    else
      s_.sequence_length = choices_.one_in(2) ? kFarTooMany : std::min(value, kLongSequence);
  }

  // ---- stages -----------------------------------------------------------------------------------

  void draw_stages() {
    const ScheduleRule& rule = *find_schedule_rule(s_.schedule);
    const ParallelDegrees& d = s_.degrees;
    if (!is_small() || rule.problem(schedule_request_of(s_))) return;
    const bool is_manual = rule.manual_order != ManualOrder::kUnsupported && choices_.one_in(3);
    const int parts = is_manual ? d.pipeline + choices_.between(0, 3)
                                : part_count(rule.placement(schedule_request_of(s_)));
    draw_blocks(parts);
    if (is_manual) draw_devices(parts);
    if (s_.schedule == kSynthesizedSchedule && choices_.one_in(2))
      plan_.orders = schedule_of(plan_).orders;
    if (s_.recompute.kind != RecomputeKind::kBlocks || parts == 1 || !choices_.one_in(3)) return;
    s_.recompute.blocks = 0;
    for (const int blocks : plan_.blocks_per_stage)
      s_.recompute.blocks_per_stage.push_back(choices_.between(0, std::max(0, blocks)));
  }

  /// False if a spoiled number leaves no stages or micro-batches, or too many to list.
  bool is_small() const {
    const ParallelDegrees& d = s_.degrees;
    if (std::min({d.pipeline, d.chunks, d.data, s_.micro_batch}) < 1) return false;
    if (stage_count(d) > 4 * limits_.ranks) return false;
    return s_.global_batch >= 1 && microbatch_count(s_) >= 1 &&
           microbatch_count(s_) <= 4 * limits_.microbatches;
  }

  /// Even stages, with some blocks moved from one stage to another.
  void draw_blocks(int parts) {
    std::vector<int>& cut = plan_.blocks_per_stage;
    cut.assign(static_cast<std::size_t>(parts), traits_.blocks / parts);
    for (int b = 0; b < traits_.blocks % parts; ++b) ++cut[static_cast<std::size_t>(b)];
    for (std::size_t moves = choices_.below(3); moves > 0; --moves) {
      int& from = cut[choices_.below(cut.size())];
      int& to = cut[choices_.below(cut.size())];
      if (from < 2) continue;
      --from;
      ++to;
    }
  }

  /// Every device has a stage.
  void draw_devices(int parts) {
    for (int stage = 0; stage < parts; ++stage)
      plan_.device_of_stage.push_back(
          stage < s_.degrees.pipeline ? stage : choices_.between(0, s_.degrees.pipeline - 1));
    std::vector<int>& devices = plan_.device_of_stage;
    for (std::size_t i = devices.size(); i > 1; --i)
      std::swap(devices[i - 1], devices[choices_.below(i)]);
    s_.degrees.chunks = 1;
  }

  const ModelGraph& model_;
  ModelTraits traits_;
  const Cluster& cluster_;
  Choices& choices_;
  const JobLimits& limits_;
  Plan plan_;
  Strategy& s_ = plan_.strategy;
  int microbatches_ = 1;
};

Plan draw_plan(const RandomJob& job, Choices& choices, const JobLimits& limits) {
  return PlanDraw(job.model->graph, job.cluster->cluster, choices, limits).draw();
}

/// A trainer that can run the plan.
void draw_trainer(const JobParts& parts, Choices& choices, RandomJob& job) {
  std::vector<const Trainer*> able;
  for (const Trainer& trainer : parts.trainers)
    if (can_run(trainer.abilities, job.plan)) able.push_back(&trainer);
  job.trainer = choices.one_of(able);  // the first one runs everything
}

/// A plan that a trainer can run; false if none of some is.
bool draw_plan_of_trainer(const JobParts& parts, Choices& choices, const JobLimits& limits,
                          RandomJob& job) {
  constexpr int kTries = 40;
  job.trainer = &choices.one_of(parts.trainers);
  for (int i = 0; i < kTries && !choices.are_used_up(); ++i) {
    job.plan = draw_plan(job, choices, limits);
    if (can_run(job.trainer->abilities, job.plan)) return true;
  }
  return false;
}

}  // namespace

RandomJob draw_job(const JobParts& parts, Choices& choices, const JobLimits& limits) {
  RandomJob job{.model = &choices.one_of(parts.models),
                .cluster = &choices.one_of(parts.clusters),
                .trainer = nullptr,
                .plan = {}};
  if (choices.one_in(3) && draw_plan_of_trainer(parts, choices, limits, job)) return job;
  job.plan = draw_plan(job, choices, limits);
  draw_trainer(parts, choices, job);
  return job;
}

std::string to_text(const RandomJob& job) {
  const Strategy& s = job.plan.strategy;
  return fmt::format("{} on {} with {}: {}, global batch {}, sequence {}", job.model->config.name,
                     job.cluster->toml.name, job.trainer->name, strategy_text(s), s.global_batch,
                     s.sequence_length);
}

}  // namespace meshwright
