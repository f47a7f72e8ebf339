#include "planner/search/explain.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "core/base/parse_quantity.hpp"
#include "core/plan/strategy_text.hpp"

namespace meshwright {
namespace {

constexpr double kWorthSaying = 0.01;  ///< smaller shares of the step are not mentioned

double gibibytes(Bytes bytes) { return static_cast<double>(bytes.value) / (1 << 30); }
double percent(double share) { return 100 * share; }

std::string tensor_sentence(const Plan& plan, const SearchJob& job) {
  const int tensor = plan.strategy.degrees.tensor;
  const std::int64_t ranks = rank_count(plan.strategy.degrees);
  const int node = used_devices_per_node(job.cluster, ranks).value_or(1);
  if (tensor == 1) return "no tensor parallelism";
  return fmt::format("TP {} {}", tensor, tensor <= node ? "stays in the node" : "spans nodes");
}

std::string pipeline_sentence(const Plan& plan, const Evaluation& evaluation) {
  const ParallelDegrees& d = plan.strategy.degrees;
  if (d.pipeline == 1) return "no pipeline parallelism";
  const std::string chunks = d.chunks > 1 ? fmt::format(" with {} chunks", d.chunks) : "";
  return fmt::format("PP {}{} has a bubble of {:.1f} % (busiest rank {:.1f} %)", d.pipeline, chunks,
                     percent(evaluation.bubble_of_period), percent(evaluation.busiest_rank_bubble));
}

/// The axis with the most exposed communication.
std::string communication_sentence(const Evaluation& evaluation) {
  std::size_t worst = 0;
  std::array<double, kAxisCount> shares{};
  for (std::size_t a = 0; a < kAxisCount; ++a) {
    shares[a] = exposed_communication_share(evaluation, static_cast<Axis>(a));
    if (shares[a] > shares[worst]) worst = a;
  }
  if (shares[worst] < kWorthSaying) return "communication is fully overlapped";
  std::string axis(name_of(static_cast<Axis>(worst)));
  for (char& c : axis) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format("exposed {} communication is {:.1f} % of the step", axis,
                     percent(shares[worst]));
}

/// The cheapest way to spend memory for speed, and why the plan does not use it.
std::string memory_sentence(const Plan& plan, const Evaluation& evaluation, const SearchJob& job) {
  const auto needs = [&](const Plan& changed) { return shortfall_of(changed, job); };
  Plan other = plan;
  other.strategy.recompute = {};
  if (plan.strategy.recompute.kind != RecomputeKind::kNone) {
    const auto shortfall = needs(other);
    if (shortfall)
      return fmt::format("without recomputation it would need {:.1f} GiB",
                         gibibytes(shortfall->needed));
    return "it would fit without recomputation, too";
  }
  if (plan.strategy.zero > 0) {
    other.strategy.zero = 0;
    DataParallelism& data = other.strategy.data_parallelism;  // options of sharded state
    data.overlap_gather = false;
    data.shard_ranks = 0;
    data.reshard_after_forward = true;
    if (const auto shortfall = needs(other))
      return fmt::format("without ZeRO it would need {:.1f} GiB", gibibytes(shortfall->needed));
  }
  const Bytes headroom = evaluation.memory_capacity - peak_memory(evaluation);
  return fmt::format("{:.1f} GiB of memory remain free", gibibytes(headroom));
}

}  // namespace

std::string why(const Plan& plan, const Evaluation& evaluation, const SearchJob& job) {
  return fmt::format("{}; {}; {}; {}", tensor_sentence(plan, job),
                     pipeline_sentence(plan, evaluation), communication_sentence(evaluation),
                     memory_sentence(plan, evaluation, job));
}

std::string reason_of_shortfall(const Plan& plan, const MemoryShortfall& shortfall) {
  return fmt::format(
      "the plan with the lowest peak memory ({}) needs {:.1f} GiB on pipeline rank {}; the device "
      "has {:.1f} GiB",
      strategy_text(plan.strategy), gibibytes(shortfall.needed), shortfall.position,
      gibibytes(shortfall.capacity));
}

std::string reason_of_state(const MemoryShortfall& shortfall) {
  return fmt::format(
      "weights, gradients and optimizer state alone need {} per device, sharded as far as "
      "possible; "
      "the device has {}",
      to_text(shortfall.needed), to_text(shortfall.capacity));
}

std::string reason_of_empty_space(const SearchSpace& space) {
  if (space.first_trainer_problem)
    return fmt::format("no valid combination that the trainer can run, for example: {}",
                       space.first_trainer_problem->what);
  if (space.first_problem)
    return fmt::format("no valid combination of parallel sizes: {}: {}", space.first_problem->where,
                       space.first_problem->what);
  return "no valid combination of parallel sizes: they must divide devices, attention heads, "
         "blocks, experts and batch";
}

}  // namespace meshwright
