/// Whole jobs: plan to task graph to step time, on one thread, folded and with every rank.
///
///   Llama405b   TP 8, PP 16 interleaved by 8, as in the Llama 3 paper (arXiv 2407.21783, table 4:
///               batches of 16 M tokens in sequences of 8,192), on H100
///   DeepSeekV3  PP 16, EP 64, ZeRO 1, 1F1B (arXiv 2412.19437, section 3.2: 15,360 sequences of
///               4,096 tokens, DualPipe there), on H800 taken as H100 with 400 GB/s of NVLink
///
///   With stragglers and contention, every rank has its own start and end of every task.
///
/// Weak scaling: ranks grow with the data-parallel replicas, so tasks and time should grow
/// linearly. Targets on one core: 16,384 ranks in 2 s and 4 GiB with 10 million tasks/s, 5 ms
/// folded; 131,072 ranks with stragglers and contention in 3 s and 4 GiB. The benchmark fails if
/// folded and unfolded step times differ.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <chrono>
#include <cstring>
#include <limits>

#include "core/lowering/lower.hpp"
#include "models/load/load.hpp"
#include "planner/search/stage_partition.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/variation/all_ranks.hpp"

namespace meshwright {
namespace {

struct Workload {
  ModelGraph model;
  Cluster cluster;
  Plan plan;
};

Cluster hopper_cluster(std::int64_t devices) {
  Cluster cluster = cluster_from_toml(find_cluster("dgx-h100"));
  const int per_node = cluster.nodes.at(cluster.groups.front().node).device_count;
  cluster.groups.front().count = static_cast<int>((devices + per_node - 1) / per_node);
  return cluster;
}

/// Replicas of up to 8 x 16 ranks, with 16 micro-batches each.
Workload llama_405b(std::int64_t ranks) {
  constexpr int kTensor = 8, kMicrobatches = 16;
  Workload job;
  job.model = model_from_config(find_model("llama-3.1-405b"));
  job.cluster = hopper_cluster(ranks);
  Strategy& s = job.plan.strategy;
  s.degrees.tensor = kTensor;
  s.degrees.pipeline = static_cast<int>(std::min<std::int64_t>(16, ranks / kTensor));
  s.degrees.chunks = 8;
  s.degrees.data = static_cast<int>(ranks / (kTensor * s.degrees.pipeline));
  s.sequence_parallel = true;
  s.global_batch = std::int64_t{kMicrobatches} * s.degrees.data;
  s.sequence_length = 8192;
  s.schedule = "interleaved-1f1b";
  s.zero = 1;
  job.plan.blocks_per_stage =
      even_cut(block_count(job.model), s.degrees.pipeline * s.degrees.chunks);
  return job;
}

/// 120 micro-batches per replica of 16 ranks; EP 64.
Workload deepseek_v3(std::int64_t ranks) {
  Workload job;
  job.model = model_from_config(find_model("deepseek-v3"));
  job.cluster = hopper_cluster(ranks);
  for (auto& [name, node] : job.cluster.nodes) node.local.bandwidth = BytesPerSecond(200e9);
  Strategy& s = job.plan.strategy;
  s.degrees.pipeline = 16;
  s.degrees.data = static_cast<int>(ranks / 16);
  s.degrees.expert = 64;
  s.global_batch = 120 * std::int64_t{s.degrees.data};
  s.sequence_length = 4096;
  s.zero = 1;
  s.model_parallelism.routing.node_limit = 4;
  s.model_parallelism.routing.fp8_dispatch = true;
  job.plan.blocks_per_stage = even_cut(block_count(job.model), 16);
  return job;
}

/// Peak memory of the process so far, in GiB, including earlier benchmarks.
double peak_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

Ticks step_of(const Workload& job, const CostModel& costs, RankSet ranks, std::size_t& tasks) {
  const TaskGraph graph = lower(job.plan, job.model, job.cluster, {.ranks = ranks});
  tasks = graph.tasks.size();
  return makespan(simulate(graph, price_works(graph.parts, graph.works, costs)));
}

void run(benchmark::State& state, Workload (*make)(std::int64_t), RankSet ranks) {
  const Workload job = make(state.range(0));
  const auto costs = make_device_cost_model(job.cluster);
  std::size_t tasks = 0;
  Ticks step;
  for (auto _ : state) step = step_of(job, *costs, ranks, tasks);
  std::size_t folded_tasks = 0;
  if (step_of(job, *costs, RankSet::kRepresentatives, folded_tasks) != step)
    state.SkipWithError("folded and unfolded step times differ");
  state.counters["tasks"] = static_cast<double>(tasks);
  state.counters["tasks/s"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["step_ms"] = to_seconds(step).value * 1e3;
  state.counters["peak_GiB"] = peak_gib();
}

void Llama405bFolded(benchmark::State& state) { run(state, llama_405b, RankSet::kRepresentatives); }
void Llama405bAllRanks(benchmark::State& state) { run(state, llama_405b, RankSet::kAll); }
void DeepSeekV3Folded(benchmark::State& state) {
  run(state, deepseek_v3, RankSet::kRepresentatives);
}
void DeepSeekV3AllRanks(benchmark::State& state) { run(state, deepseek_v3, RankSet::kAll); }

/// Writing the times of all tasks once, at the rate of a plain copy: `bound_ms`.
double copy_ms(std::size_t bytes) {
  std::vector<char> from(std::size_t{64} << 20, 1), to(from.size());
  double best = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count());
  }
  return best * static_cast<double>(bytes) / (2.0 * static_cast<double>(from.size()));
}

/// `state.range(1)` stragglers on ranks all over the job, each slower than the one before.
void Llama405bStragglersAndContention(benchmark::State& state) {
  const Workload job = llama_405b(state.range(0));
  const auto costs = make_device_cost_model(job.cluster);
  std::vector<Straggler> stragglers;
  for (std::int64_t s = 0; s < state.range(1); ++s)
    stragglers.push_back({RankId(static_cast<std::int32_t>(s * 7919 % state.range(0))),
                          1.1 + 0.01 * static_cast<double>(s)});
  std::size_t tasks = 0, simulated = 0;
  Ticks step;
  for (auto _ : state) {
    const ReplicatedGraph all = lower_replicated(job.plan, job.model, job.cluster);
    const TaskGraph& folded = all.folded.graph;
    const LinkNetwork network(job.cluster, static_cast<int>(all.ranks.size()));
    const SimulatedReplicas replicas = simulate_replicas(
        all, price_works(folded.parts, folded.works, *costs), stragglers, &network);
    const TaskTimes times = times_of_all_ranks(all, replicas);
    tasks = times.end.size();
    simulated = replicas.times.end.size();
    step = makespan(replicas.times);
  }
  state.counters["tasks"] = static_cast<double>(tasks);
  state.counters["simulated"] = static_cast<double>(simulated);
  state.counters["bound_ms"] = copy_ms(tasks * 2 * sizeof(Ticks));
  state.counters["step_ms"] = to_seconds(step).value * 1e3;
  state.counters["peak_GiB"] = peak_gib();
}
BENCHMARK(Llama405bStragglersAndContention)
    ->Args({16384, 1})
    ->Args({131072, 0})
    ->Args({131072, 1})
    ->Args({131072, 64})
    ->Unit(benchmark::kMillisecond);

BENCHMARK(Llama405bFolded)->Arg(16384)->Unit(benchmark::kMillisecond);
BENCHMARK(Llama405bAllRanks)->RangeMultiplier(4)->Range(64, 16384)->Unit(benchmark::kMillisecond);
BENCHMARK(DeepSeekV3Folded)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(DeepSeekV3AllRanks)->Arg(2048)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace meshwright
