/// Plan search of the README's job: GPT-3 175B on 1,024 A100. Wall time with all cores.
#include <benchmark/benchmark.h>

#include "models/load/load.hpp"
#include "planner/search/search.hpp"
#include "simulator/cost/device_cost_model.hpp"

namespace meshwright {
namespace {

void search_gpt3_on_1024_a100(benchmark::State& state) {
  const ModelGraph model = model_from_config(find_model("gpt3-175b"));
  const Cluster cluster = cluster_from_toml(find_cluster("dgx-a100"));
  const Goal goal{.gpus = 1024, .global_batch = 1536, .sequence_length = 2048};
  SearchCertificate certificate;
  for (auto _ : state) {
    const auto costs = make_device_cost_model(cluster);  // with empty caches, as in the program
    SearchResult result = search(model, cluster, *costs, goal);
    certificate = result.certificate;
    benchmark::DoNotOptimize(result);
  }
  state.counters["candidates"] = static_cast<double>(certificate.candidates);
  state.counters["simulated"] = static_cast<double>(certificate.simulated);
  state.counters["candidates_per_s"] = benchmark::Counter(
      static_cast<double>(certificate.candidates) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}
BENCHMARK(search_gpt3_on_1024_a100)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace meshwright
