/// Every parallel mode within a replica computes the same as one rank, over ten steps.
#include <gmock/gmock.h>

#include <map>
#include <tuple>

#include "core/formats/file.hpp"
#include "tests/executor/runs/expect_same.hpp"

namespace meshwright {
namespace {

constexpr int kManySteps = 10;

constexpr std::string_view kSmallLlama =
    R"({"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 48,
        "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 200,
        "max_position_embeddings": 16})";
const std::string kManyKeyHeads = with_values(kSmallLlama, {{"num_key_value_heads", "4"}});
constexpr std::string_view kNormedHeads =
    R"({"model_type": "qwen3", "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 48,
        "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 8, "attention_bias": true,
        "vocab_size": 200, "max_position_embeddings": 16})";
const std::string kGptWithDropout = with_values(
    kGpt, {{"n_layer", "2"}, {"resid_pdrop", "0.2"}, {"attn_pdrop", "0.3"}, {"embd_pdrop", "0.1"}});
const std::string kSinksAndBiases = with_values(kGptOss, {{"num_local_experts", "8"}});
const std::string kBalanced = with_values(kDeepSeek, {{"n_routed_experts", "8"}});

using S = Strategy&;
void nothing(S) {}

struct Mode {
  friend void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }
  std::string name;
  std::string_view config;
  void (*change)(Strategy&);
  /// Routing rules for the single-rank run; see RoutingGroups.
  RoutingGroups like = {};
  void (*both)(Strategy&) = nothing;
  bool nodes_of_one_device = false;
};

NamedText one_device_nodes() {
  const std::string path = MESHWRIGHT_SOURCE_DIR "/models/examples/one-device-nodes.toml";
  return {.name = "one-device-nodes", .where = path, .text = read_file(path)};
}

void ring(S s) { s.model_parallelism.context = ContextAlgorithm::kRing; }
void all_to_all(S s) { s.model_parallelism.context = ContextAlgorithm::kAllToAll; }
void two_sequences(S s) { s.micro_batch = 2; }
void limited(S s) { s.model_parallelism.routing.capacity = 1.0; }

std::vector<Mode> context_modes() {
  return {
      {"gather_4_of_two_sequences",
       kSmallLlama,
       [](S s) { s.degrees.context = 4; },
       {},
       two_sequences},
      {"ring_2", kSmallLlama, [](S s) { s.degrees.context = 2, ring(s); }},
      {"ring_4_of_two_sequences",
       kSmallLlama,
       [](S s) { s.degrees.context = 4, ring(s); },
       {},
       two_sequences},
      {"ring_2_tensor_2_sequence", kSmallLlama,
       [](S s) { s.degrees.context = 2, use_sequence_parallel(s, 2), ring(s); }},
      {"ring_2_zb_h1_recompute", kSmallLlama,
       [](S s) {
         s.degrees.context = 2, use_pipeline(s, 2, "zb-h1"), ring(s),
         s.recompute.kind = RecomputeKind::kFull;
       }},
      {"heads_2", kSmallLlama, [](S s) { s.degrees.context = 2, all_to_all(s); }},
      {"heads_4_of_two_sequences",
       kManyKeyHeads,
       [](S s) { s.degrees.context = 4, all_to_all(s); },
       {},
       two_sequences},
      {"heads_2_tensor_2", kManyKeyHeads,
       [](S s) { s.degrees.context = 2, s.degrees.tensor = 2, all_to_all(s); }},
      {"heads_2_recompute", kManyKeyHeads,
       [](S s) { s.degrees.context = 2, s.recompute.kind = RecomputeKind::kFull, all_to_all(s); }},
      {"heads_2_selective", kManyKeyHeads,
       [](S s) {
         s.degrees.context = 2, s.recompute.kind = RecomputeKind::kSelective, all_to_all(s);
         s.attention = AttentionAlgorithm::kStandard;
       }},
      {"ring_of_sinks_and_windows", kSinksAndBiases, [](S s) { s.degrees.context = 4, ring(s); }},
      {"heads_of_sinks_and_windows", kSinksAndBiases,
       [](S s) { s.degrees.context = 2, all_to_all(s); }},
      {"ring_of_latent_attention", kBalanced,
       [](S s) { s.degrees.context = 2, s.degrees.tensor = 2, ring(s); }},
  };
}

std::vector<Mode> tensor_modes() {
  return {
      {"copies_of_key_heads", kSmallLlama, [](S s) { s.degrees.tensor = 8; }},
      {"copies_of_key_heads_sequence_zero_1", kSmallLlama,
       [](S s) { use_sequence_parallel(s, 4), use_data(s, 2, 1); }},
      {"copies_of_one_normed_head", kNormedHeads, [](S s) { use_sequence_parallel(s, 4); }},
      {"overlap", kSmallLlama,
       [](S s) { use_sequence_parallel(s, 2), s.model_parallelism.tensor_overlap = true; }},
      {"overlap_zb_h1", kSmallLlama,
       [](S s) {
         use_sequence_parallel(s, 2), use_pipeline(s, 2, "zb-h1");
         s.model_parallelism.tensor_overlap = true;
       }},
      {"latent_attention_sequence", kBalanced, [](S s) { use_sequence_parallel(s, 4); }},
      {"stages_first", kSmallLlama,
       [](S s) {
         s.degrees = {.data = 2, .pipeline = 2, .tensor = 2};
         s.model_parallelism.order = *rank_order_from_text("pp-tp-cp-ep-dp");
       }},
      {"replicas_inside", kSmallLlama,
       [](S s) {
         s.degrees = {.data = 2, .pipeline = 2, .context = 2, .tensor = 2};
         s.model_parallelism.order = *rank_order_from_text("dp-cp-tp-ep-pp");
         s.zero = 1;
       }},
      {"experts_inside", kSinksAndBiases,
       [](S s) {
         s.degrees = {.data = 2, .pipeline = 2, .tensor = 2, .expert = 2};
         s.model_parallelism.order = *rank_order_from_text("ep-dp-cp-tp-pp");
       }},
  };
}

std::vector<Mode> expert_modes() {
  return {
      {"cut_experts", kSinksAndBiases,
       [](S s) { s.degrees.tensor = 2, s.degrees.expert_tensor = 2; }},
      {"cut_experts_spread", kSinksAndBiases,
       [](S s) {
         s.degrees.tensor = 2, s.degrees.data = 2;
         s.degrees.expert = 2, s.degrees.expert_tensor = 2;
       }},
      {"cut_experts_sequence_zero_1", kSinksAndBiases,
       [](S s) {
         use_sequence_parallel(s, 2), use_data(s, 4, 1), s.degrees.expert = 2;
         s.degrees.expert_tensor = 2;
       }},
      {"cut_experts_recompute_zb_h1", kSinksAndBiases,
       [](S s) {
         s.degrees.tensor = 2, use_pipeline(s, 2, "zb-h1"), s.degrees.expert_tensor = 2,
         s.recompute.kind = RecomputeKind::kFull;
       }},
      {"corrected_scores_sequence_zero_1", kBalanced,
       [](S s) { use_sequence_parallel(s, 2), use_data(s, 2, 1), s.degrees.expert = 4; }},
      {"limited_spread",
       kMixtral,
       [](S s) { s.degrees.data = 4, s.degrees.expert = 4; },
       {},
       limited},
      {"limited_tensor",
       kMixtral,
       [](S s) { s.degrees.tensor = 2, s.degrees.expert = 2; },
       {.tensor = 2},
       limited},
      {"limited_sequence_context_cut_experts",
       kMixtral,
       [](S s) {
         s.degrees = {.context = 2, .tensor = 2, .expert = 2, .expert_tensor = 2};
         s.sequence_parallel = true;
       },
       {.context = 2, .tensor = 2},
       limited},
      {"fp8_rows",
       kMixtral,
       [](S s) { s.degrees.data = 2, s.degrees.expert = 2; },
       {},
       [](S s) { s.model_parallelism.routing.fp8_dispatch = true; }},
      {"few_nodes",
       kBalanced,
       [](S s) { s.degrees.data = 4, s.degrees.expert = 4; },
       {.nodes = 4},
       [](S s) { s.model_parallelism.routing.node_limit = 2; },
       true},
  };
}

std::vector<Mode> dropout_modes() {
  return {
      {"tensor_2", kGptWithDropout, [](S s) { s.degrees.tensor = 2; }},
      {"tensor_2_sequence", kGptWithDropout, [](S s) { use_sequence_parallel(s, 2); }},
      {"data_2_pipeline_2", kGptWithDropout,
       [](S s) { s.degrees.data = 2, s.degrees.pipeline = 2; }},
      {"micro_batches_of_2", kGptWithDropout, [](S s) { s.micro_batch = 2; }},
      {"gather_2", kGptWithDropout, [](S s) { s.degrees.context = 2; }},
      {"ring_4", kGptWithDropout, [](S s) { s.degrees.context = 4, ring(s); }},
      {"heads_2", kGptWithDropout, [](S s) { s.degrees.context = 2, all_to_all(s); }},
      {"recompute_zb_h1", kGptWithDropout,
       [](S s) { use_pipeline(s, 2, "zb-h1"), s.recompute.kind = RecomputeKind::kFull; }},
      {"selective", kGptWithDropout,
       [](S s) {
         s.recompute.kind = RecomputeKind::kSelective;
         s.attention = AttentionAlgorithm::kStandard;
       }},
  };
}

class SameMode : public testing::TestWithParam<Mode> {};

TEST_P(SameMode, MatchesOneRank) {
  const Mode& mode = GetParam();
  Strategy one = base();
  mode.both(one);
  Strategy cut = one;
  mode.change(cut);
  RunOptions options{.steps = kManySteps};
  if (mode.nodes_of_one_device) options.cluster = one_device_nodes();
  const TrainingRun many = run_plan(mode.config, cut, options);
  options.training.routing = mode.like;
  using Rules = std::tuple<std::string_view, void (*)(Strategy&), int, int, int>;
  static std::map<Rules, TrainingRun> one_rank;
  const Rules rules{mode.config, mode.both, mode.like.context, mode.like.tensor, mode.like.nodes};
  if (!one_rank.contains(rules)) one_rank[rules] = run_plan(mode.config, one, options);
  expect_same_run(one_rank.at(rules), many);
}

std::string mode_name(const testing::TestParamInfo<Mode>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Context, SameMode, testing::ValuesIn(context_modes()), mode_name);
INSTANTIATE_TEST_SUITE_P(Tensor, SameMode, testing::ValuesIn(tensor_modes()), mode_name);
INSTANTIATE_TEST_SUITE_P(Expert, SameMode, testing::ValuesIn(expert_modes()), mode_name);
INSTANTIATE_TEST_SUITE_P(Dropout, SameMode, testing::ValuesIn(dropout_modes()), mode_name);

/// The tests above are only meaningful if the rules have an effect.
TEST(RoutingRules, ChangeTheTrainedModel) {
  const auto loss_with = [](std::string_view config, void (*change)(Strategy&),
                            const RoutingGroups& like = {}) {
    Strategy s = base();
    change(s);
    RunOptions options;
    options.training.routing = like;
    return run_plan(config, s, options).steps.back().loss;
  };
  const double free = loss_with(kMixtral, [](S) {});
  EXPECT_NE(free, loss_with(kMixtral, limited));
  EXPECT_NE(loss_with(kMixtral, limited), loss_with(kMixtral, limited, {.tensor = 2}));
  EXPECT_NE(free,
            loss_with(kMixtral, [](S s) { s.model_parallelism.routing.fp8_dispatch = true; }));
  EXPECT_NE(
      loss_with(kBalanced, [](S) {}),
      loss_with(kBalanced, [](S s) { s.model_parallelism.routing.node_limit = 1; }, {.nodes = 4}));
  // Every expert has capacity for all rows: nothing is dropped.
  EXPECT_EQ(free, loss_with(kMixtral, [](S s) { s.model_parallelism.routing.capacity = 2; }));
}

TEST(Dropout, ChangesWithTheSeedAndTheStep) {
  RunOptions options, other;
  other.training.seed = 2;
  const TrainingRun run = run_plan(kGptWithDropout, base(), options);
  ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
  EXPECT_NE(run.steps[0].loss, run_plan(kGptWithDropout, base(), other).steps[0].loss);
  // A rate of zero equals no correction.
  const double with = run.steps[0].loss, without = run_plan(kGpt, base()).steps[0].loss;
  EXPECT_NE(with, without);
}

}  // namespace
}  // namespace meshwright
