/// What lower() predicts for a rank is what its executor counts: to the byte, class by class, at
/// the moment of the peak. Reserved memory (kernels' working memory) apart.
#include <gmock/gmock.h>

#include "simulator/simulate.hpp"
#include "tests/executor/tiny_training.hpp"

namespace meshwright {
namespace {

struct Case {
  friend void PrintTo(const Case& tried, std::ostream* out) { *out << tried.name; }
  std::string name;
  std::string_view config;
  Strategy strategy;
};

Case named(std::string name, std::string_view config, void (*change)(Strategy&)) {
  Case made{std::move(name), config, base()};
  change(made.strategy);
  return made;
}

void pipeline(Strategy& s, int stages, std::string_view schedule, int chunks = 1) {
  s.degrees.pipeline = stages, s.degrees.chunks = chunks, s.schedule = schedule;
}
void cut_tensors(Strategy& s, bool tokens_too) {
  s.degrees.tensor = 2, s.sequence_parallel = tokens_too;
}

std::vector<Case> one_axis() {
  using S = Strategy&;
  return {
      named("one_rank", kGpt, [](S) {}),
      named("larger_micro_batches", kGpt, [](S s) { s.micro_batch = 2; }),
      named("bf16", kGpt, [](S s) { s.dtype = Dtype::kBf16; }),
      named("llama", kLlama, [](S) {}),
      named("llama_bf16", kLlama, [](S s) { s.dtype = Dtype::kBf16; }),
      named("recompute_full", kGpt, [](S s) { s.recompute.kind = RecomputeKind::kFull; }),
      named("recompute_selective", kGpt, [](S s) { s.recompute.kind = RecomputeKind::kSelective; }),
      named("recompute_two_blocks", kLlama,
            [](S s) { s.recompute = {.kind = RecomputeKind::kBlocks, .blocks = 2}; }),
      named("data_2", kGpt, [](S s) { s.degrees.data = 2; }),
      named("data_4_zero_1", kGpt, [](S s) { s.degrees.data = 4, s.zero = 1; }),
      named("data_2_zero_1_bf16", kLlama,
            [](S s) { s.degrees.data = 2, s.zero = 1, s.dtype = Dtype::kBf16; }),
      named("tensor_2", kGpt, [](S s) { cut_tensors(s, false); }),
      named("tensor_2_sequence", kGpt, [](S s) { cut_tensors(s, true); }),
      named("tensor_4_sequence", kGpt,
            [](S s) { s.degrees.tensor = 4, s.sequence_parallel = true; }),
      named("tensor_2_sequence_recompute", kGpt,
            [](S s) { cut_tensors(s, true), s.recompute.kind = RecomputeKind::kFull; }),
      named("llama_tensor_2", kLlama, [](S s) { cut_tensors(s, false); }),
      named("llama_tensor_2_sequence_bf16", kLlama,
            [](S s) { cut_tensors(s, true), s.dtype = Dtype::kBf16; }),
      named("context_2", kGpt, [](S s) { s.degrees.context = 2; }),
      named("llama_context_4", kLlama, [](S s) { s.degrees.context = 4; }),
  };
}

std::vector<Case> schedules() {
  using S = Strategy&;
  return {
      named("gpipe_4", kGpt, [](S s) { pipeline(s, 4, "gpipe"); }),
      named("1f1b_2", kGpt, [](S s) { pipeline(s, 2, "1f1b"); }),
      named("1f1b_4", kLlama, [](S s) { pipeline(s, 4, "1f1b"); }),
      named("interleaved_2", kGpt, [](S s) { pipeline(s, 2, "interleaved-1f1b", 2); }),
      named("zb_h1_4", kGpt, [](S s) { pipeline(s, 4, "zb-h1"); }),
      named("zb_2p_4", kGpt, [](S s) { pipeline(s, 4, "zb-2p"); }),
      named("zb_v_2", kGpt, [](S s) { pipeline(s, 2, "zb-v", 2); }),
      named("dualpipev_2", kGpt, [](S s) { pipeline(s, 2, "dualpipev", 2); }),
      named("dualpipe_4_bf16", kLlama,
            [](S s) { pipeline(s, 4, "dualpipe"), s.dtype = Dtype::kBf16; }),
      named("chimera_4", kGpt, [](S s) { pipeline(s, 4, "chimera"); }),
      named("pipedream_4", kLlama, [](S s) { pipeline(s, 4, "pipedream"); }),
      named("pipedream_2_data_2_bf16", kLlama,
            [](S s) { pipeline(s, 2, "pipedream"), s.degrees.data = 2, s.dtype = Dtype::kBf16; }),
      named("pipedream_2bw_4_recompute", kLlama,
            [](S s) { pipeline(s, 4, "pipedream-2bw"), s.recompute.kind = RecomputeKind::kFull; }),
      named("1f1b_2_recompute", kGpt,
            [](S s) { pipeline(s, 2, "1f1b"), s.recompute.kind = RecomputeKind::kFull; }),
      named("zb_h1_2_recompute", kLlama,
            [](S s) { pipeline(s, 2, "zb-h1"), s.recompute.kind = RecomputeKind::kFull; }),
      named("zb_h1_2_tensor_2_sequence", kGpt,
            [](S s) { pipeline(s, 2, "zb-h1"), cut_tensors(s, true); }),
      named("zb_v_2_tensor_2_bf16", kLlama,
            [](S s) { pipeline(s, 2, "zb-v", 2), cut_tensors(s, false), s.dtype = Dtype::kBf16; }),
      named("1f1b_2_data_2_zero_1_tensor_2_sequence", kGpt,
            [](S s) {
              pipeline(s, 2, "1f1b"), cut_tensors(s, true);
              s.degrees.data = 2, s.zero = 1;
            }),
      named("1f1b_2_data_2_tensor_2", kLlama,
            [](S s) { pipeline(s, 2, "1f1b"), cut_tensors(s, false), s.degrees.data = 2; }),
  };
}

std::vector<Case> cases() {
  std::vector<Case> all = one_axis();
  const std::vector<Case> more = schedules();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

class CountedMemory : public testing::TestWithParam<Case> {};

TEST_P(CountedMemory, EqualsThePrediction) {
  TinyJob job = tiny_job(GetParam().config, GetParam().strategy);
  for (auto& [key, device] : job.cluster.devices) device.kernels = KernelLibrary::kOwn;
  constexpr int kTwoSteps = 2;
  job.graph = lower(job.plan, job.model, job.cluster, {.ranks = RankSet::kAll, .steps = kTwoSteps});
  EXPECT_THAT(check_task_graph(job.graph), testing::IsEmpty());
  TrainingRequest request = job.request();
  request.steps = kTwoSteps;
  const TrainingRun run = train(request);
  ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
  std::vector<MemoryAmounts> predicted = peak_memory_by_rank(job.graph);
  ASSERT_EQ(predicted.size(), run.peak_memory.size());
  for (std::size_t rank = 0; rank < predicted.size(); ++rank) {
    predicted[rank][MemoryClass::kReserved] = Bytes(0);
    for (int c = 0; c < kMemoryClassCount; ++c) {
      const auto what = static_cast<MemoryClass>(c);
      EXPECT_EQ(run.peak_memory[rank][what].value, predicted[rank][what].value)
          << name_of(what) << " of rank " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, CountedMemory, testing::ValuesIn(cases()),
                         [](const auto& tried) { return tried.param.name; });

}  // namespace
}  // namespace meshwright
