/// Random combinations of parallel axes compute the same as one rank, bitwise reproducibly.
#include <gmock/gmock.h>

#include <map>

#include "core/formats/plan.hpp"
#include "tests/executor/runs/expect_same.hpp"

namespace meshwright {
namespace {

constexpr int kPlans = 40;
constexpr std::uint64_t kSeed = 20240501;

/// Platform-independent random numbers (splitmix64).
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  template <class T>
  T one_of(std::initializer_list<T> values) {
    state_ += 0x9e3779b97f4a7c15U;
    return *(values.begin() + mixed_bits(state_) % values.size());
  }

 private:
  std::uint64_t state_;
};

struct AnyPlan {
  std::string_view config;
  Strategy strategy;
};

AnyPlan draw(Draws& draws) {
  AnyPlan plan{draws.one_of({kGpt, kLlama, kMixtral}), base()};
  Strategy& s = plan.strategy;
  ParallelDegrees& d = s.degrees;
  d.data = draws.one_of({1, 2, 4});
  d.pipeline = draws.one_of({1, 2, 4});
  d.context = draws.one_of({1, 2, 4});
  d.tensor = draws.one_of({1, 2, 4});
  s.sequence_parallel = d.tensor > 1 && draws.one_of({true, false});
  s.micro_batch = draws.one_of({1, 2});
  s.zero = draws.one_of({0, 1});
  s.schedule = draws.one_of({"1f1b", "gpipe", "zb-h1", "zb-v"});
  if (s.schedule == "zb-v") d.chunks = 2;
  s.recompute = draws.one_of<Recompute>(
      {{}, {RecomputeKind::kSelective}, {RecomputeKind::kFull}, {RecomputeKind::kBlocks, 1}});
  if (draws.one_of({true, false}))
    s.layer_options = *layer_options_from_text(
        draws.one_of({"1-2:recompute=full", "0:recompute=selective+3:recompute=none",
                      "0-3:recompute=none", "1-2:tp=1", "0-1:tp=1+1-2:recompute=full"}));
  if (d.data == 2 && s.micro_batch == 1 && draws.one_of({true, false}))
    s.batch_shares = *batch_shares_from_text(draws.one_of({"0:5+1:3", "0:1+1:7"}));
  s.attention = draws.one_of({AttentionAlgorithm::kFlash, AttentionAlgorithm::kStandard});
  ModelParallelism& m = s.model_parallelism;
  m.context = draws.one_of(
      {ContextAlgorithm::kAllGather, ContextAlgorithm::kRing, ContextAlgorithm::kAllToAll});
  m.tensor_overlap = s.sequence_parallel && draws.one_of({true, false});
  m.order = *rank_order_from_text(draws.one_of(
      {"tp-cp-ep-dp-pp", "pp-tp-cp-ep-dp", "cp-dp-tp-ep-pp", "dp-cp-ep-tp-pp", "ep-tp-dp-cp-pp"}));
  if (plan.config == kMixtral) {
    d.expert = draws.one_of({1, 2, 4});
    d.expert_tensor = draws.one_of({1, 2});
  }
  return plan;
}

/// Discards invalid combinations with check_plan().
bool is_sound(const AnyPlan& plan) {
  const ModelGraph model = tiny_model(plan.config);
  const auto stages = static_cast<std::size_t>(stage_count(plan.strategy.degrees));
  if (stages > 4 || rank_count(plan.strategy.degrees) > 16) return false;
  const Plan whole{.strategy = plan.strategy,
                   .blocks_per_stage = std::vector<int>(stages, 4 / static_cast<int>(stages))};
  return check_plan(whole, model, cluster_from_toml(find_cluster("dgx-a100"))).empty() &&
         check_runnable(whole, model).empty();
}

/// AdamW moves an element by up to the learning rate whatever its gradient, so that one whose
/// gradient cancels moves by the rounding of its sum. An epsilon above that rounding (1e-10) keeps
/// differences of plans in proportion to those of their gradients.
TrainingOptions options_of_comparison() {
  TrainingOptions options;
  options.epsilon = 1e-6F;
  return options;
}
constexpr double kTolerance = 2e-6;

TEST(AnyPlan, MatchesOneRank) {
  const RunOptions options{.training = options_of_comparison()};
  std::map<std::string_view, TrainingRun> one_rank;
  Draws draws(kSeed);
  for (int tried = 0; tried < kPlans;) {
    const AnyPlan plan = draw(draws);
    if (!is_sound(plan)) continue;
    const Strategy& s = plan.strategy;
    const ParallelDegrees& d = s.degrees;
    SCOPED_TRACE(testing::Message()
                 << "plan " << tried << " of seed " << kSeed << ": " << plan.config.substr(0, 24)
                 << " dp " << d.data << " pp " << d.pipeline << " vpp " << d.chunks << " cp "
                 << d.context << " tp " << d.tensor << " ep " << d.expert << " etp "
                 << d.expert_tensor << " sp " << s.sequence_parallel << " mb " << s.micro_batch
                 << " zero " << s.zero << " " << s.schedule << " recompute " << to_text(s.recompute)
                 << " attention " << name_of(s.attention) << " context "
                 << name_of(s.model_parallelism.context) << " overlap "
                 << s.model_parallelism.tensor_overlap << " order "
                 << to_text(s.model_parallelism.order));
    if (!one_rank.contains(plan.config))
      one_rank[plan.config] = run_plan(plan.config, base(), options);
    const TrainingRun run = run_plan(plan.config, s, options);
    expect_same_run(one_rank.at(plan.config), run, kTolerance);
    if (tried++ % 4 == 0) expect_bitwise_same_run(run, run_plan(plan.config, s, options));
  }
}

}  // namespace
}  // namespace meshwright
