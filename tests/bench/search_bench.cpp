/// Plan searches with ten rows, from dense models to mixtures of experts. Wall time with all cores.
#include <benchmark/benchmark.h>

#include "models/load/load.hpp"
#include "planner/search/search.hpp"
#include "simulator/cost/device_cost_model.hpp"

namespace meshwright {
namespace {

void search_plans(benchmark::State& state, const char* model_name, const char* cluster_name,
                  const Goal& goal) {
  const ModelGraph model = model_from_config(find_model(model_name));
  const Cluster cluster = cluster_from_toml(find_cluster(cluster_name));
  SearchCertificate certificate;
  for (auto _ : state) {
    const auto costs = make_device_cost_model(cluster);  // with empty caches, as in the program
    SearchResult result = search(model, cluster, *costs, goal);
    certificate = result.certificate;
    benchmark::DoNotOptimize(result);
  }
  state.counters["candidates"] = static_cast<double>(certificate.candidates);
  state.counters["simulated"] = static_cast<double>(certificate.simulated);
  state.counters["gap"] = certificate.gap;
  state.counters["candidates_per_s"] = benchmark::Counter(
      static_cast<double>(certificate.candidates) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}

#define MESHWRIGHT_SEARCH(name, model, cluster, gpus, batch, sequence)               \
  BENCHMARK_CAPTURE(search_plans, name, model, cluster, Goal{gpus, batch, sequence}) \
      ->UseRealTime()                                                                \
      ->Unit(benchmark::kMillisecond)
MESHWRIGHT_SEARCH(gpt3_175b_on_1024_a100, "gpt3-175b", "dgx-a100", 1024, 1536, 2048);
MESHWRIGHT_SEARCH(gpt3_175b_on_4096_a100, "gpt3-175b", "dgx-a100", 4096, 4096, 2048);
MESHWRIGHT_SEARCH(gpt3_175b_on_960_p4d, "gpt3-175b", "p4d.24xlarge", 960, 1920, 2048);
MESHWRIGHT_SEARCH(llama_70b_on_64_h100, "llama-3.1-70b", "dgx-h100", 64, 128, 8192);
MESHWRIGHT_SEARCH(llama_70b_on_512_h100, "llama-3.1-70b", "dgx-h100", 512, 512, 8192);
MESHWRIGHT_SEARCH(llama_405b_on_1024_h100, "llama-3.1-405b", "dgx-h100", 1024, 512, 8192);
MESHWRIGHT_SEARCH(llama_405b_on_16384_h100, "llama-3.1-405b", "dgx-h100", 16384, 2048, 8192);
MESHWRIGHT_SEARCH(deepseek_v3_on_2048_h100, "deepseek-v3", "dgx-h100", 2048, 15360, 4096);
MESHWRIGHT_SEARCH(qwen3_235b_on_256_h100, "qwen3-235b-a22b", "dgx-h100", 256, 1024, 4096);
MESHWRIGHT_SEARCH(llama_8b_131072_tokens, "llama-3.1-8b", "dgx-h100", 8, 8, 131072);
#undef MESHWRIGHT_SEARCH

}  // namespace
}  // namespace meshwright
