#include "planner/search/plan_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/random.hpp"
#include "core/plan/strategy_text.hpp"
#include "planner/parallel/parallel_for.hpp"
#include "planner/search/branching.hpp"

namespace meshwright {
namespace {

// ---- is it in the space? ------------------------------------------------------------------------

Layout layout_of(const Strategy& s, const FixedChoices& fixed) {
  Layout layout{.degrees = s.degrees,
                .sequence_parallel = s.sequence_parallel,
                .tensor_overlap = s.model_parallelism.tensor_overlap,
                .micro_batch = s.micro_batch};
  layout.degrees.chunks = fixed.chunks.value_or(1);
  if (s.degrees.context > 1) layout.context = s.model_parallelism.context;
  return layout;
}

bool has_schedule(const PipelineChoice& pipeline, const Strategy& s) {
  return (s.degrees.pipeline == 1 || pipeline.rule->name == s.schedule) &&
         pipeline.chunks == s.degrees.chunks;
}

/// Some recomputed blocks stand for any number of them.
bool has_recompute(const Recompute& recompute, const Strategy& s) {
  return recompute.kind == s.recompute.kind && recompute.modules == s.recompute.modules;
}

/// Options without effect at this ZeRO stage may differ.
bool has_replication(const Replication& replication, const Strategy& s) {
  const DataParallelism &a = replication.data, &b = s.data_parallelism;
  if (replica_count(s.degrees) == 1) return true;
  return replication.zero == s.zero && a.buckets == b.buckets &&
         a.overlap_gather == b.overlap_gather && a.shard_ranks == b.shard_ranks &&
         (s.zero < 3 || a.reshard_after_forward == b.reshard_after_forward);
}

std::string replication_words(const Strategy& s) {
  const std::string options = options_text(s);
  return fmt::format("zero {}{}{}", s.zero, options.empty() ? "" : " with ", options);
}

// ---- candidates at random -----------------------------------------------------------------------

constexpr std::size_t kDrawsOfBatch = 64;
constexpr int kBitsOfDraws = 32;  ///< so that seeds do not share draws

/// Draws candidates of a space with equal probabilities.
class Draws {
 public:
  explicit Draws(const SearchSpace& space, std::uint64_t seed = 0)
      : space_(space), drawn_(seed << kBitsOfDraws) {
    for (const SearchSpace::Branch& branch : space.branches)
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + space.candidates_below(branch));
  }

  Node next() {
    const auto below =
        static_cast<std::int64_t>(mixed_bits(drawn_++) % static_cast<std::uint64_t>(ends_.back()));
    const auto end = std::ranges::upper_bound(ends_, below);
    const auto index = static_cast<std::size_t>(end - ends_.begin());
    const SearchSpace::Branch& branch = space_.branches[index];
    std::int64_t rest = index == 0 ? below : below - ends_[index - 1];
    const auto choice_of = [&rest](std::size_t count) {
      const auto choice = static_cast<std::int16_t>(rest % static_cast<std::int64_t>(count));
      rest /= static_cast<std::int64_t>(count);
      return choice;
    };
    return {.bound = {},
            .branch = static_cast<std::int32_t>(index),
            .pipeline = choice_of(space_.pipelines(branch).size()),
            .recompute = choice_of(space_.recomputes.size()),
            .replication = choice_of(space_.replications(branch).size())};
  }

 private:
  const SearchSpace& space_;
  std::vector<std::int64_t> ends_;  ///< number of candidates up to and including each branch
  std::uint64_t drawn_;
};

/// The step time of a candidate. nullopt: it is not valid or does not fit.
std::optional<Ticks> step_time_of(Node node, Branching& branching) {
  while (true) {
    const NodeOutcome outcome = branching.judge(node);
    if (outcome.children.empty()) return outcome.step_time;
    node = outcome.children.front();
  }
}

}  // namespace

std::string choice_outside(const Strategy& s, const SearchSpace& space, const FixedChoices& fixed) {
  const Layout layout = layout_of(s, fixed);
  const auto branch = std::ranges::find(space.branches, layout, &SearchSpace::Branch::layout);
  if (branch == space.branches.end())
    return fmt::format("{}, micro-batch {}{}", split_text(s), s.micro_batch,
                       layout.tensor_overlap ? ", TP overlap" : "");
  const auto none_has = [&s](const auto& list, const auto& has) {
    return std::ranges::none_of(list, [&](const auto& choice) { return has(choice, s); });
  };
  if (none_has(space.pipelines(*branch), has_schedule))
    return fmt::format("{} with {} chunks", s.schedule, s.degrees.chunks);
  if (none_has(space.recomputes, has_recompute)) return "recompute " + to_text(s.recompute);
  if (none_has(space.replications(*branch), has_replication)) return replication_words(s);
  return "";
}

std::vector<Candidate> random_candidates(const SearchSpace& space, int count, std::uint64_t seed) {
  Draws draws(space, seed);
  std::vector<Candidate> candidates;
  for (int i = 0; i < count; ++i) {
    const Node node = draws.next();
    const SearchSpace::Branch& branch = space.branches[static_cast<std::size_t>(node.branch)];
    candidates.push_back({branch.layout,
                          space.pipelines(branch)[static_cast<std::size_t>(node.pipeline)],
                          space.recomputes[static_cast<std::size_t>(node.recompute)],
                          space.replications(branch)[static_cast<std::size_t>(node.replication)]});
  }
  return candidates;
}

FixedChoices choices_not_searched(const Strategy& strategy) {
  FixedChoices fixed;
  fixed.dtype = strategy.dtype;
  fixed.attention = strategy.attention;
  fixed.precision = strategy.precision;
  fixed.data_parallelism = strategy.data_parallelism;
  fixed.data_parallelism.buckets = {};
  fixed.data_parallelism.overlap_gather = false;
  fixed.data_parallelism.shard_ranks = 0;
  fixed.data_parallelism.reshard_after_forward = true;
  fixed.model_parallelism = strategy.model_parallelism;
  return fixed;
}

PlanRank rank_of(const Plan& plan, Ticks step_time, const SearchJob& job,
                 const PlanRankOptions& options) {
  const SearchSpace space = make_space(job.model, job.cluster, job.goal, job.fixed);
  PlanRank rank;
  rank.outside = choice_outside(plan.strategy, space, job.fixed);
  if (space.branches.empty()) return rank;
  const Incumbents none(space, 1);  // so that no bound decides
  Branching branching(job, space, none);
  Draws draws(space);
  while (rank.fitting < options.fitting && rank.drawn < options.drawn) {
    std::vector<Node> batch(kDrawsOfBatch);
    std::ranges::generate(batch, [&draws] { return draws.next(); });
    std::vector<std::optional<Ticks>> times(batch.size());
    parallel_for(batch.size(), job.threads,
                 [&](std::size_t i) { times[i] = step_time_of(batch[i], branching); });
    rank.drawn += static_cast<std::int64_t>(batch.size());
    for (const std::optional<Ticks>& time : times) {
      rank.fitting += time ? 1 : 0;
      rank.faster += time && ratio(step_time, *time) > 1 + kFasterBy ? 1 : 0;
    }
  }
  return rank;
}

}  // namespace meshwright
