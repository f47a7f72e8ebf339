/// Trains GPT-2 (124M) and a small mixture of experts on the built-in text in every parallel mode,
/// and prints the deviation of the losses from a single rank as a Markdown table. Exits with 1 if a
/// run fails or a loss deviates by more than fp32 rounding.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/formats/file.hpp"
#include "tests/cli/run_program.hpp"
#include "tests/training/training_modes.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;

/// 10 million parameters; four experts, two per token.
constexpr std::string_view kMixture =
    R"({"model_type": "mixtral", "hidden_size": 256, "num_hidden_layers": 4,
        "intermediate_size": 512, "num_attention_heads": 8, "num_key_value_heads": 4,
        "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 8192,
        "max_position_embeddings": 1024, "sliding_window": null})";

/// Bound for up to ten steps in fp32, where sums are accumulated in different orders.
constexpr double kTolerance = 1e-5;

struct Flags {
  std::vector<std::string> only;
  std::string ranks = "processes", dtype = "fp32";
  int steps = 5, sequences = 8, length = 32;
  bool list = false;
};

struct Trained {
  std::vector<double> losses;
  double median = 0, first_quartile = 0, third_quartile = 0;  ///< of the step time, in milliseconds
};

class Table {
 public:
  explicit Table(const Flags& flags) : flags_(flags) { write_file(mixture_file(), kMixture); }

  int print() {
    fmt::print(
        "| model | mode | ranks | loss after {} steps | deviation from one rank | step (IQR) |\n"
        "|---|---|---|---|---|---|\n",
        flags_.steps);
    for (const TrainingMode& mode : training_modes())
      if (is_wanted(mode) || (mode.ranks == 1 && is_reference_wanted(mode))) print(mode);
    return has_failed_ ? 1 : 0;
  }

  std::string command_of(const TrainingMode& mode) const {
    return fmt::format(
        "run --model {} --cluster cpu-laptop --gpus {} {}{}--dtype {} --micro-batch 1 "
        "--global-batch {} --seq {} --steps {} --clock wall --ranks {}",
        mode.is_mixture ? mixture_file() : "gpt2", mode.ranks, mode.flags,
        mode.flags.empty() ? "" : " ", flags_.dtype, flags_.sequences, flags_.length, flags_.steps,
        flags_.ranks);
  }

  bool is_wanted(const TrainingMode& mode) const {
    const std::string name = title(mode);
    return flags_.only.empty() ||
           std::any_of(flags_.only.begin(), flags_.only.end(),
                       [&](const std::string& part) { return name.find(part) != name.npos; });
  }

 private:
  std::string mixture_file() const { return (folder_.path() / "mixture.json").string(); }
  static std::string title(const TrainingMode& mode) {
    return (mode.is_mixture ? "mixture " : "gpt2 ") + mode.name;
  }
  bool is_reference_wanted(const TrainingMode& one) const {
    const std::vector<TrainingMode> modes = training_modes();
    return std::any_of(modes.begin(), modes.end(), [&](const TrainingMode& mode) {
      return mode.is_mixture == one.is_mixture && is_wanted(mode);
    });
  }

  void print(const TrainingMode& mode) {
    std::istringstream words(command_of(mode) + " --json");
    const ProgramRun run =
        run_program({.program = MESHWRIGHT_PROGRAM,
                     .arguments = {std::istream_iterator<std::string>(words), {}},
                     .folder = folder_.path(),
                     .standard_input = ""});
    if (run.exit_code != 0) {
      has_failed_ = true;
      const std::size_t error = run.standard_error.find("error:");
      fmt::print("| {} | {} | {} | failed | | |\n", model_of(mode), mode.name, mode.ranks);
      fmt::print(stderr, "meshwright {}\nexits with {}: {}\n", command_of(mode), run.exit_code,
                 run.standard_error.substr(error == std::string::npos ? 0 : error));
    } else {
      print(mode, trained(Json::parse(run.standard_output)));
    }
    std::fflush(stdout);
  }

  void print(const TrainingMode& mode, const Trained& run) {
    if (mode.ranks == 1) one_rank_[mode.is_mixture] = run;
    std::string difference = "-";
    if (mode.ranks > 1 && one_rank_.contains(mode.is_mixture)) {
      const double worst = largest_difference(run, one_rank_[mode.is_mixture]);
      difference = fmt::format("{:.1e}{}", worst, mode.is_asynchronous ? " (stale by design)" : "");
      if (worst > kTolerance && !mode.is_asynchronous) has_failed_ = true;
    }
    fmt::print("| {} | {} | {} | {:.5f} | {} | {:.0f} ms ({:.0f} to {:.0f}) |\n", model_of(mode),
               mode.name, mode.ranks, run.losses.back(), difference, run.median, run.first_quartile,
               run.third_quartile);
  }

  static const char* model_of(const TrainingMode& mode) {
    return mode.is_mixture ? "mixture" : "gpt2";
  }

  static Trained trained(const Json& json) {
    Trained run;
    for (const Json& step : json.at("steps")) run.losses.push_back(step.at("loss"));
    constexpr double kNanosecondsOfOne = 1e6;
    const Json& spread = json.at("step_time_spread");
    run.median = json.at("step_time_ns").get<double>() / kNanosecondsOfOne;
    run.first_quartile = spread.at("first_quartile_ns").get<double>() / kNanosecondsOfOne;
    run.third_quartile = spread.at("third_quartile_ns").get<double>() / kNanosecondsOfOne;
    return run;
  }

  /// Largest relative difference of the losses of a step.
  static double largest_difference(const Trained& run, const Trained& one) {
    double worst = 0;
    for (std::size_t i = 0; i < run.losses.size(); ++i)
      worst = std::max(worst, std::abs(run.losses[i] / one.losses.at(i) - 1));
    return worst;
  }

  const Flags& flags_;
  const TemporaryFolder folder_;
  std::map<bool, Trained> one_rank_;  ///< by is_mixture
  bool has_failed_ = false;
};

int main_of(int argc, char** argv) {
  CLI::App app("Trains GPT-2 (124M) and a small mixture of experts in every mode.", "train_modes");
  Flags flags;
  app.add_option("--only", flags.only,
                 "run only modes with this text in their names; may be repeated");
  app.add_option("--ranks", flags.ranks, "kind of ranks: processes or threads")
      ->check(CLI::IsMember({"processes", "threads"}));
  app.add_option("--dtype", flags.dtype, "fp32 or bf16")->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_option("--steps", flags.steps, "training steps (5)")->check(CLI::Range(1, 1000));
  app.add_option("--batch", flags.sequences, "sequences per step (8)")->check(CLI::Range(8, 1024));
  app.add_option("--seq", flags.length, "tokens per sequence (32)")->check(CLI::Range(8, 1024));
  app.add_flag("--list", flags.list, "print the commands without running them");
  CLI11_PARSE(app, argc, argv);
  Table table(flags);
  if (!flags.list) return table.print();
  for (const TrainingMode& mode : training_modes())
    if (table.is_wanted(mode)) fmt::print("meshwright {}\n", table.command_of(mode));
  return 0;
}

}  // namespace
}  // namespace meshwright

int main(int argc, char** argv) { return meshwright::main_of(argc, argv); }
