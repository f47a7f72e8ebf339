/// Random jobs that a trainer can run, for properties of exported launches.
#pragma once

#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/plan.hpp"
#include "core/plan/stage_cut.hpp"
#include "core/trainer/trainer.hpp"
#include "models/launch/export_launch.hpp"
#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"

namespace meshwright {

class RandomJobs {
 public:
  RandomJobs(const std::string& trainer, std::vector<std::string> models, unsigned seed)
      : trainer_(trainer_from_toml(find_trainer(trainer))), random_(seed) {
    for (const std::string& name : models) models_.push_back(launch_model(find_model(name)));
  }

  /// The next job whose plan is valid and within the abilities of the trainer.
  LaunchJob next() {
    while (true) {
      const LaunchModel& model = models_[below(models_.size())];
      Plan plan;
      plan.strategy = strategy();
      const int stages = plan.strategy.degrees.pipeline * plan.strategy.degrees.chunks;
      if (!cut(static_cast<int>(model.shape.layers.size()), stages, plan)) continue;
      if (!can_run(trainer_.abilities, plan)) continue;
      if (!check_plan(plan, model.graph, cluster_).empty()) continue;
      return launch_job(plan, model, cluster_, "dgx-h100");
    }
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  bool chance(unsigned one_in) { return random_() % one_in == 0; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + below(values.size()));
  }

  Strategy strategy() {
    Strategy s;
    ParallelDegrees& d = s.degrees;
    d = {.data = one_of({1, 2, 4, 8}),
         .pipeline = one_of({1, 1, 2, 4}),
         .context = one_of({1, 1, 2}),
         .tensor = one_of({1, 2, 4}),
         .expert = one_of({1, 1, 2, 4})};
    if (d.pipeline > 1) d.chunks = one_of({1, 2});
    if (d.expert > 1 || chance(4)) d.expert_tensor = one_of({1, d.tensor});
    s.sequence_parallel = d.tensor > 1 && !chance(4);
    s.micro_batch = one_of({1, 2});
    s.global_batch = std::int64_t{s.micro_batch} * d.data * 2 * d.pipeline;
    s.sequence_length = one_of({1024, 4096});
    s.schedule = d.chunks > 1 ? "interleaved-1f1b" : "1f1b";
    if (d.pipeline > 1)
      s.schedule = one_of<std::string>({s.schedule, s.schedule, "gpipe", "zb-v", "dualpipev"});
    memory(s);
    data(s);
    model_options(s);
    return s;
  }

  void memory(Strategy& s) {
    s.zero = one_of({0, 1, 2, 3});
    s.recompute = *recompute_from_text(
        one_of<const char*>({"none", "selective", "full", "block:1", "modules:core_attn",
                             "modules:layernorm", "modules:mlp,layernorm", "torch-selective"}));
    s.dtype = one_of({Dtype::kBf16, Dtype::kBf16, Dtype::kFp16, Dtype::kFp8, Dtype::kFp32});
    if (s.dtype == Dtype::kFp8) {
      s.precision.fp8_recipe = one_of(
          {Fp8Recipe::kDelayed, Fp8Recipe::kTensorwise, Fp8Recipe::kBlockwise, Fp8Recipe::kMxfp8});
      s.precision.fp8_parameters = chance(2);
      s.precision.wide_blocks = one_of({0, 1});
    }
    s.precision.gradients = one_of({Dtype::kFp32, Dtype::kFp32, Dtype::kBf16, Dtype::kFp16});
    if (chance(4)) s.attention = AttentionAlgorithm::kStandard;
  }

  void data(Strategy& s) {
    DataParallelism& d = s.data_parallelism;
    d.buckets = *buckets_from_text(one_of<const char*>({"none", "megatron", "64MiB"}));
    d.overlap_gather = chance(3);
    if (s.zero == 3) d.prefetch = one_of({0, 1});
    if (s.zero == 3) d.reshard_after_forward = !chance(3);
    if (s.zero > 0 && s.degrees.data > 2 && chance(3)) d.shard_ranks = s.degrees.data / 2;
    d.offload_optimizer = s.zero > 0 && chance(4);
  }

  void model_options(Strategy& s) {
    ModelParallelism& m = s.model_parallelism;
    if (s.degrees.context > 1)
      m.context = one_of(
          {ContextAlgorithm::kAllGather, ContextAlgorithm::kRing, ContextAlgorithm::kAllToAll});
    m.tensor_overlap = s.sequence_parallel && chance(2);
    if (s.degrees.expert > 1 && chance(3)) m.routing.capacity = 1.25;
    m.routing.overlap = s.degrees.expert > 1 && chance(3);
    if (chance(5)) m.order = *rank_order_from_text("tp-cp-ep-pp-dp");
  }

  /// Even stages, or one layer moved from one stage to another.
  bool cut(int layers, int stages, Plan& plan) {
    if (layers % stages != 0) return false;
    plan.blocks_per_stage.assign(static_cast<std::size_t>(stages), layers / stages);
    if (stages < 2 || chance(2)) return true;
    const std::size_t from = below(plan.blocks_per_stage.size());
    const std::size_t to = (from + 1) % plan.blocks_per_stage.size();
    --plan.blocks_per_stage[from];
    ++plan.blocks_per_stage[to];
    return true;
  }

  Trainer trainer_;
  std::mt19937 random_;
  Cluster cluster_ = cluster_from_toml(find_cluster("dgx-h100"));
  std::vector<LaunchModel> models_;
};

}  // namespace meshwright
