#include "cli/flags/variation_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/flags/amounts.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"
#include "planner/parallel/parallel_for.hpp"
#include "simulator/engine/simulate.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDefaultDraws = 200;
constexpr CountRange kDrawRange{.smallest = 1, .largest = 1'000'000};
constexpr CountRange kSeedRange{.smallest = 0, .largest = std::int64_t{1} << 62};
constexpr double kMedian = 0.5, kTail = 0.95;
/// Defaults; the output states them.
constexpr Seconds kDefaultCheckpointWrite(60.0), kDefaultRestart(300.0);

Straggler parse_straggler(const std::string& text, std::span<const RankInfo> ranks) {
  constexpr double kMostSlow = 1e6;
  const auto fail = [&](std::string what) {
    refuse_flag("--straggler", std::move(what), "write RANK:FACTOR, such as 3:1.2 for 20 % slower");
  };
  std::string_view rest;
  const std::size_t colon = text.find(':');
  std::int32_t rank = -1;
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + std::min(colon, text.size()), rank);
  if (colon == std::string::npos || error != std::errc() || stop != text.data() + colon)
    fail(fmt::format("invalid value '{}': expected RANK:FACTOR", text));
  const auto factor = leading_number(std::string_view(text).substr(colon + 1), rest);
  if (!factor || !rest.empty() || *factor <= 0 || *factor > kMostSlow)
    fail(fmt::format("invalid value '{}': the factor must be positive and at most 1e6", text));
  const bool known = std::any_of(ranks.begin(), ranks.end(),
                                 [&](const RankInfo& info) { return info.rank.value == rank; });
  if (!known)
    refuse_flag("--straggler", fmt::format("rank {} does not exist", rank),
                fmt::format("use a rank from 0 to {}", ranks.size() - 1));
  return {.rank = RankId(rank), .factor = *factor};
}

}  // namespace

Variation variation_of(const VariationFlags& flags, std::span<const RankInfo> ranks) {
  Variation variation;
  variation.seed = static_cast<std::uint64_t>(flags.seed.value_or(1));
  for (const std::string& text : flags.stragglers) {
    const Straggler straggler = parse_straggler(text, ranks);
    for (const Straggler& other : variation.stragglers)
      if (other.rank == straggler.rank)
        refuse_flag("--straggler",
                    fmt::format("rank {} is given more than once", straggler.rank.value),
                    "give it once");
    variation.stragglers.push_back(straggler);
  }
  if (flags.jitter.empty()) return variation;
  constexpr double kMostJitter = 2.0;
  std::string_view rest;
  const auto jitter = leading_number(flags.jitter, rest);
  if (!jitter || !rest.empty() || *jitter < 0 || *jitter > kMostJitter)
    refuse_flag("--jitter",
                fmt::format("must be between 0 and {}, got {}", kMostJitter, flags.jitter),
                "set the sigma of log-normal noise, such as 0.05");
  variation.jitter = *jitter;
  return variation;
}

void add_variation_flags(CLI::App& app, VariationFlags& flags) {
  const OptionGroup group(app, "Stragglers and jitter");
  add_value(app, "--straggler", flags.stragglers, "RANK:FACTOR",
            "multiply the compute times of a rank by FACTOR (implies --all-ranks)");
  add_value(app, "--jitter", flags.jitter, "X",
            "sigma of log-normal task noise, such as 0.05 (implies --all-ranks)");
  add_count(app, "--draws", flags.draws, kDrawRange,
            "number of steps sampled with --jitter (default: 200)");
  add_count(app, "--seed", flags.seed, kSeedRange, "random seed of --jitter (default: 1)");
  add_count(app, "--threads", flags.threads, kThreadRange,
            "threads for sampling; 0: all cores (default: 0)");
}

void add_failure_flags(CLI::App& app, FailureFlags& flags) {
  const OptionGroup group(app, "Failures and goodput");
  add_value(app, "--mtbf", flags.mtbf, "TIME",
            "mean time between failures of a device, such as 50000h: prints goodput");
  add_value(app, "--checkpoint-write", flags.checkpoint_write, "TIME",
            "time that writing a checkpoint blocks training (default: 60s)");
  add_value(app, "--restart", flags.restart, "TIME",
            "time from a failure until training resumes (default: 300s)");
  add_value(app, "--checkpoint-interval", flags.checkpoint_interval, "TIME",
            "training time between checkpoints (default: optimal)");
}

bool varies_steps(const VariationFlags& flags) {
  return !flags.stragglers.empty() || !flags.jitter.empty();
}

namespace {

/// After an interruption: only the samples drawn before it.
std::vector<Ticks> draw_in_parallel(const PricedGraph& priced, const Variation& variation,
                                    int draws, int threads) {
  std::vector<std::optional<Ticks>> drawn(static_cast<std::size_t>(draws));
  const PartialResults partial_results;
  parallel_for(drawn.size(), threads, [&](std::size_t draw) {
    if (is_interrupted()) return;
    drawn[draw] = draw_steps(priced.graph, priced.prices, variation, 1, draw, priced.step).front();
  });
  std::vector<Ticks> steps;
  for (const std::optional<Ticks>& step : drawn)
    if (step) steps.push_back(*step);
  if (steps.empty()) stop_if_interrupted();
  return steps;
}

}  // namespace

StepVariation vary_steps(const VariationFlags& flags, const PricedGraph& priced, Ticks nominal) {
  StepVariation result;
  result.variation = variation_of(flags, priced.graph.ranks);
  result.nominal = nominal;
  Variation quiet = result.variation;
  quiet.jitter = 0;
  result.slowed = draw_steps(priced.graph, priced.prices, quiet, 1, 0, priced.step).front();
  if (result.variation.jitter > 0)
    result.steps = draw_in_parallel(priced, result.variation, flags.draws.value_or(kDefaultDraws),
                                    thread_count(flags.threads.value_or(0)));
  return result;
}

std::string variation_text(const StepVariation& v) {
  const auto against = [&](Ticks time) {
    return fmt::format("{:>10}  {:+.1f} %", to_text(time), 100 * (ratio(time, v.nominal) - 1));
  };
  std::string text = "\nStep time with stragglers and jitter, relative to the step time above:\n";
  for (const Straggler& straggler : v.variation.stragglers)
    text += fmt::format("  straggler: rank {}, compute times x {}\n", straggler.rank.value,
                        straggler.factor);
  if (!v.variation.stragglers.empty())
    text += fmt::format("  stragglers only       {}\n", against(v.slowed));
  if (v.steps.empty()) return text;
  text += fmt::format("  jitter: sigma {}, {} samples, seed {}\n", v.variation.jitter,
                      v.steps.size(), v.variation.seed);
  text += fmt::format("  mean                  {}\n", against(mean(v.steps)));
  text += fmt::format("  p50                   {}\n", against(quantile(v.steps, kMedian)));
  text += fmt::format("  p95                   {}\n", against(quantile(v.steps, kTail)));
  return text;
}

std::optional<FailureModel> failure_model(const FailureFlags& flags, int devices) {
  if (flags.mtbf.empty()) {
    for (const auto& [flag, text] :
         {std::pair("--checkpoint-write", &flags.checkpoint_write),
          std::pair("--restart", &flags.restart),
          std::pair("--checkpoint-interval", &flags.checkpoint_interval)})
      if (!text->empty())
        refuse_flag(flag, "requires '--mtbf'",
                    "set the mean time between failures of a device, such as --mtbf 50000h");
    return std::nullopt;
  }
  FailureModel model{.device_mtbf = parse_positive_time("--mtbf", flags.mtbf),
                     .devices = devices,
                     .checkpoint_write = kDefaultCheckpointWrite,
                     .restart = kDefaultRestart};
  if (!flags.checkpoint_write.empty())
    model.checkpoint_write = parse_positive_time("--checkpoint-write", flags.checkpoint_write);
  if (!flags.restart.empty()) model.restart = parse_long_time("--restart", flags.restart);
  return model;
}

std::optional<Seconds> checkpoint_interval(const FailureFlags& flags) {
  if (flags.checkpoint_interval.empty()) return std::nullopt;
  return parse_positive_time("--checkpoint-interval", flags.checkpoint_interval);
}

std::string goodput_text(const FailureModel& model, std::optional<Seconds> interval, Ticks step) {
  const Goodput g = goodput(model, interval);
  std::string text = fmt::format(
      "\nGoodput with a job MTBF of {:.3g} h, checkpoint writes of {:.3g} s and restarts of {:.3g} "
      "s:\n",
      g.between_failures.value / 3600, model.checkpoint_write.value, model.restart.value);
  text += fmt::format("  checkpoint interval   {:.4g} s, {:.4g} steps{} (Young's rule: {:.4g} s)\n",
                      g.interval.value, ratio(g.interval, to_seconds(step)),
                      interval ? "" : ", the best", young_interval(model).value);
  text += fmt::format("  goodput               {} (checkpoints {}, lost work and restarts {})\n",
                      percent(g.useful), percent(g.checkpoints), percent(g.lost));
  if (g.useful > 0)
    text += fmt::format("  effective step time   {}\n",
                        to_text(Seconds(to_seconds(step).value / g.useful)));
  return text;
}

std::string variation_json(const std::optional<StepVariation>& steps,
                           const std::optional<FailureModel>& failures,
                           std::optional<Seconds> interval) {
  Json json = Json::object();
  if (steps) {
    Json& v = json["variation"];
    v["jitter"] = steps->variation.jitter;
    v["seed"] = steps->variation.seed;
    v["draws"] = steps->steps.size();
    v["with_stragglers_ns"] = to_nanoseconds(steps->slowed);
    if (!steps->steps.empty()) {
      v["mean_ns"] = to_nanoseconds(mean(steps->steps));
      v["p50_ns"] = to_nanoseconds(quantile(steps->steps, kMedian));
      v["p95_ns"] = to_nanoseconds(quantile(steps->steps, kTail));
    }
  }
  if (failures) {
    const Goodput g = goodput(*failures, interval);
    json["goodput"] = {{"useful", g.useful},
                       {"checkpoints", g.checkpoints},
                       {"lost", g.lost},
                       {"checkpoint_interval_s", g.interval.value},
                       {"young_interval_s", young_interval(*failures).value},
                       {"job_mtbf_s", g.between_failures.value}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace meshwright
