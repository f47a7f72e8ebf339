#include "gui/session/scenario.hpp"

#include <algorithm>

#include "core/schedule/schedule.hpp"

namespace meshwright::gui {
namespace {

/// Discards everything that is valid for one number of stages only.
void forget_hand_work(Scenario& s) {
  s.blocks_per_stage.clear();
  s.device_of_stage.clear();
  s.what_if.slowness.clear();
  if (!s.orders.empty()) {
    s.orders.clear();
    s.strategy.schedule = kDefaultSchedule;
  }
}

struct Job {
  std::string_view model, cluster;
  int tensor, pipeline, chunks, data;
  int microbatches, micro_batch;
  std::int64_t sequence;
  std::string_view schedule;
};

Scenario scenario_of(const Job& job) {
  Scenario s;
  s.model = find_model(std::string(job.model));
  s.cluster = find_cluster(std::string(job.cluster));
  s.strategy.degrees.tensor = job.tensor;
  s.strategy.degrees.pipeline = job.pipeline;
  s.strategy.degrees.chunks = job.chunks;
  s.strategy.degrees.data = job.data;
  s.strategy.sequence_parallel = job.tensor > 1;
  s.strategy.micro_batch = job.micro_batch;
  s.strategy.global_batch = std::int64_t{job.microbatches} * job.micro_batch * job.data;
  s.strategy.sequence_length = job.sequence;
  s.strategy.schedule = job.schedule;
  return s;
}

constexpr Ticks milliseconds(std::int64_t n) { return Ticks(n * (kTicksPerSecond / 1000)); }

}  // namespace

Scenario default_scenario() {
  return scenario_of(Job{"gpt3-175b", "dgx-a100", 8, 8, 1, 1, 32, 1, 2048, "1f1b"});
}

Scenario scenario_of(const PlanFile& file) {
  Scenario s;
  s.model = {file.model_name, file.model_name, file.model_config};
  s.cluster = {file.cluster_name, file.cluster_name, file.cluster_toml};
  s.strategy = file.plan.strategy;
  s.blocks_per_stage = file.plan.blocks_per_stage;
  s.orders = file.plan.orders;
  s.device_of_stage = file.plan.device_of_stage;
  return s;
}

const std::vector<Recompute>& recompute_choices() {
  static const std::vector<Recompute> all{
      {RecomputeKind::kNone, 0}, {RecomputeKind::kSelective, 0}, {RecomputeKind::kFull, 0}};
  return all;
}

std::vector<Example> example_scenarios() {
  std::vector<Example> examples;
  examples.push_back(
      {"textbook", scenario_of(Job{"gpt2-medium", "dgx-a100", 1, 4, 1, 1, 8, 1, 1024, "1f1b"})});
  Scenario& textbook = examples.back().scenario;
  textbook.what_if.forward = milliseconds(10);
  textbook.what_if.backward_input = milliseconds(10);
  textbook.what_if.backward_weight = milliseconds(10);
  textbook.what_if.message = Ticks();
  textbook.what_if.optimizer = Ticks();
  examples.push_back({"interleaving", scenario_of(Job{"gpt3-175b", "dgx-a100", 8, 8, 3, 1, 16, 1,
                                                      2048, "interleaved-1f1b"})});
  examples.push_back({"zero-bubble", scenario_of(Job{"llama-3.1-70b", "dgx-h100", 8, 8, 1, 1, 24, 1,
                                                     4096, "zb-h1"})});
  examples.push_back({"dualpipe", scenario_of(Job{"llama-3.1-70b", "dgx-h100", 8, 8, 2, 1, 20, 1,
                                                  4096, "dualpipev"})});
  examples.push_back({"straggler", scenario_of(Job{"llama-3.1-70b", "dgx-h100", 8, 4, 1, 4, 32, 1,
                                                   4096, "1f1b"})});
  set_slowness(examples.back().scenario, 2, 1.3);
  examples.push_back({"gpt3", scenario_of(Job{"gpt3-175b", "dgx-a100", 8, 16, 6, 8, 32, 1, 2048,
                                              "interleaved-1f1b"})});
  examples.back().scenario.strategy.recompute = {RecomputeKind::kSelective, 0};
  return examples;
}

int microbatches(const Scenario& s) {
  const std::int64_t one = std::int64_t{s.strategy.micro_batch} * s.strategy.degrees.data;
  return one < 1 ? 0 : static_cast<int>(microbatch_count(s.strategy));
}

namespace {

/// Of every data-parallel rank alike.
void share_batch(Strategy& s, int microbatches) {
  s.batch_shares.clear();
  s.global_batch = std::int64_t{microbatches} * s.micro_batch * s.degrees.data;
}

}  // namespace

void set_microbatches(Scenario& s, int count) {
  if (count != microbatches(s) && !s.orders.empty()) {
    s.orders.clear();
    s.strategy.schedule = kDefaultSchedule;
  }
  share_batch(s.strategy, count);
}

void set_data_degree(Scenario& s, int replicas) {
  const int count = microbatches(s);
  s.strategy.degrees.data = replicas;
  share_batch(s.strategy, count);
}

void set_micro_batch(Scenario& s, int sequences) {
  const int count = microbatches(s);
  s.strategy.micro_batch = sequences;
  share_batch(s.strategy, count);
}

void set_pipeline_degree(Scenario& s, int devices) {
  if (devices == s.strategy.degrees.pipeline) return;
  s.strategy.degrees.pipeline = devices;
  forget_hand_work(s);
}

void set_chunks(Scenario& s, int chunks) {
  if (chunks == s.strategy.degrees.chunks) return;
  s.strategy.degrees.chunks = chunks;
  s.blocks_per_stage.clear();
  s.device_of_stage.clear();
  if (!s.orders.empty()) {
    s.orders.clear();
    s.strategy.schedule = default_schedule(chunks);
  }
}

void set_schedule(Scenario& s, const std::string& name) {
  s.orders.clear();
  s.strategy.schedule = name;
  const ScheduleRule* rule = find_schedule_rule(name);
  if (rule == nullptr) return;
  const int chunks = s.strategy.degrees.chunks;
  ScheduleRequest request{.devices = s.strategy.degrees.pipeline,
                          .chunks = chunks,
                          .microbatches = microbatches(s),
                          .microbatch_group = {},
                          .slices = {},
                          .times = {},
                          .activation_cap = {}};
  if (!rule->problem(request)) return;
  for (const int other : {1, 2}) {
    request.chunks = other;
    if (rule->problem(request)) continue;
    set_chunks(s, other);
    return;
  }
}

void set_tensor_degree(Scenario& s, int ranks) {
  s.strategy.degrees.tensor = ranks;
  if (ranks == 1) s.strategy.sequence_parallel = false;
}

void set_slowness(Scenario& s, int pipeline_rank, double factor) {
  constexpr double kLeast = 0.05, kMost = 20;
  const auto devices = static_cast<std::size_t>(s.strategy.degrees.pipeline);
  if (pipeline_rank < 0 || static_cast<std::size_t>(pipeline_rank) >= devices) return;
  s.what_if.slowness.resize(devices, 1.0);
  s.what_if.slowness[static_cast<std::size_t>(pipeline_rank)] = std::clamp(factor, kLeast, kMost);
  if (std::all_of(s.what_if.slowness.begin(), s.what_if.slowness.end(),
                  [](double f) { return f == 1; }))
    s.what_if.slowness.clear();
}

}  // namespace meshwright::gui
