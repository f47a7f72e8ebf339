/// Predicts and runs many plans on this machine and prints the prediction errors.
///
///   replay    runs the order of the tasks with sleeps of the predicted length, in slow motion, so
///             that wake-up latencies are negligible
///   virtual   CPU time of every kernel, predicted time of messages; kernels are predicted from a
///             calibration measured between the runs
///   typical   virtual clock, with steps composed of the median time of every task
///   wall      real time: reported without a limit, since ranks share cores
///   memory    peak memory of the rank with the highest peak
///
/// `validate --quick` runs a third of the plans, `--only tp --only "pp 4"` those with any of these
/// texts in their names, `--clocks replay` (or virtual) one clock only. Exits with 1 if an error
/// exceeds its limit: replay 1 % per plan, virtual 5 % on average and 10 % per plan.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "cli/calibration/calibration_probes.hpp"
#include "cli/calibration/measured_noise.hpp"
#include "cli/terminal/table.hpp"
#include "core/cost/calibration.hpp"
#include "core/formats/file.hpp"
#include "core/lowering/lower.hpp"
#include "core/plan/weight_versions.hpp"
#include "core/timeline/compare.hpp"
#include "core/timeline/timeline_steps.hpp"
#include "executor/calibration/kernel_curves.hpp"
#include "executor/calibration/measure_kernels.hpp"
#include "executor/runs/example_text.hpp"
#include "executor/runs/train.hpp"
#include "models/load/this_machine.hpp"
#include "planner/search/search.hpp"
#include "simulator/cost/calibrated_cost_model.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/engine/simulate.hpp"
#include "tests/validation/kernel_errors.hpp"
#include "tests/validation/typical_step.hpp"
#include "tests/validation/validation_plans.hpp"

namespace meshwright {
namespace {

constexpr double kReplayLimit = 0.01, kVirtualMean = 0.05, kVirtualWorst = 0.10;

struct Flags {
  bool quick = false, wall = false, verbose = false, kernels = false;
  int steps = 2, rounds = 4, attempts = 1;
  std::string stored, write, clocks = "both";
  std::vector<std::string> only;
  bool replays() const { return clocks != "virtual"; }
  bool trains() const { return clocks != "replay"; }
};

/// Number of synchronizations per step on the rank that has most of them.
std::int64_t most_meetings(const TaskGraph& graph) {
  std::vector<std::int64_t> in_work, of_rank(graph.ranks.size());
  for (const Work& work : graph.works) {
    std::int64_t collectives = 0;
    for (const WorkPartUse& use : work.parts)
      for (const Step& step : graph.parts[static_cast<std::size_t>(use.part)].steps)
        collectives += std::holds_alternative<Collective>(step) ? use.count : 0;
    in_work.push_back(work.parts.empty() ? 1 : collectives);
  }
  for (const Task& task : graph.tasks)
    of_rank[static_cast<std::size_t>(task.rank)] += in_work[task.work.index()];
  return *std::max_element(of_rank.begin(), of_rank.end());
}

/// A calibration with fixed message times, which predicted and virtual times have in common.
Calibration blank_calibration() {
  Calibration calibration;
  calibration.machine = MeasuredMachine{
      .processor = "this processor",
      .cores = 2,
      .memory = Bytes(std::int64_t{8} << 30),
      .message_latency = Seconds(20e-6),
      .message_bandwidth = BytesPerSecond(4e9),
      .memory_bandwidth = BytesPerSecond(10e9),
      .peak = {{Dtype::kFp32, FlopsPerSecond(60e9)}, {Dtype::kBf16, FlopsPerSecond(60e9)}}};
  return calibration;
}

/// A cost model in which everything takes `factor` times as long.
class SlowMotion final : public CostModel {
 public:
  SlowMotion(const CostModel& costs, int factor) : costs_(costs), factor_(factor) {}
  Seconds time_of(const Kernel& kernel) const override { return factor_ * costs_.time_of(kernel); }
  Seconds time_of(const Collective& collective) const override {
    return factor_ * costs_.time_of(collective);
  }
  TransferCost cost_of(const Transfer& transfer) const override {
    const TransferCost cost = costs_.cost_of(transfer);
    return {factor_ * cost.latency, factor_ * cost.occupancy};
  }
  Seconds wait_of(int ranks, Seconds work) const override {
    return factor_ * costs_.wait_of(ranks, work / factor_);
  }
  std::string provenance() const override { return costs_.provenance(); }

 private:
  const CostModel& costs_;
  double factor_;
};

struct Measured {
  ValidationPlan plan;
  Plan completed;
  TaskGraph graph;
  std::vector<Timeline> steps;      ///< virtual, without warm-up
  std::vector<TaskTimes> times;     ///< for the same steps
  std::vector<Ticks> wall;          ///< step times
  std::vector<MemoryAmounts> peak;  ///< accounted, by rank
};

class Validation {
 public:
  /// `calm`: additional slowdown factor of replays, for busy machines.
  Validation(const Flags& flags, double calm)
      : flags_(flags),
        calm_(calm),
        cluster_(cluster_of(blank_calibration())),
        base_(make_device_cost_model(cluster_)) {
    for (const char c : example_text()) text_.words.push_back(static_cast<unsigned char>(c));
  }

  int run() {
    choose_plans();
    if (!flags_.trains()) return report(blank_calibration());
    const std::vector<ProbeShape> probes = calibration_probes();
    for (int round = 0; round < flags_.rounds; ++round)
      for (std::size_t i = 0; i < runs_.size(); ++i) {
        for (std::size_t p = i; p < probes.size(); p += runs_.size())
          if (flags_.rounds == 1 || static_cast<int>(p) % 2 == round % 2) probe(probes[p]);
        fmt::print(stderr, "round {}: {}\n", round + 1, runs_[i].plan.name);
        measure(runs_[i]);
      }
    const Calibration calibration = calibration_of_session();
    if (!flags_.write.empty()) write_file(flags_.write, to_json(calibration));
    return report(calibration);
  }

 private:
  void choose_plans() {
    std::size_t number = 0;
    for (ValidationPlan& plan : validation_plans()) {
      const auto has = [&](const std::string& t) { return plan.name.find(t) != std::string::npos; };
      if (!flags_.only.empty() && std::ranges::none_of(flags_.only, has)) continue;
      Measured run;
      run.plan = std::move(plan);
      const Strategy& s = run.plan.strategy;
      Plan guess;
      guess.strategy = s;
      if (!check_runnable(guess, run.plan.model).empty()) {
        left_out_.push_back(run.plan.name);
        continue;
      }
      if (flags_.quick && number++ % 3 != 0) continue;
      run.completed = complete_plan(s, run.plan.model, cluster_, *base_);
      run.graph = lower(run.completed, run.plan.model, cluster_,
                        {.ranks = RankSet::kAll, .steps = kStepsWithoutFlush, .programs = true});
      runs_.push_back(std::move(run));
    }
  }

  void probe(const ProbeShape& shape) {
    const KernelProbe probe = probe_of(shape);
    MeasuredProbe measured = run_probe(probe, kernel_table(Backend::kCpu), /*counted_steps=*/1);
    std::ranges::move(measured.kernels, std::back_inserter(timed_));
    if (probe.has_equal_ranks) passes_.push_back({std::move(measured.graph), measured.waiting});
  }

  TrainingRun train_by(const Measured& run, TimelineClock clock, const CostModel& costs,
                       int steps) {
    TrainingRun trained = train({.plan = run.completed,
                                 .model = run.plan.model,
                                 .graph = run.graph,
                                 .cost_model = costs,
                                 .text = text_,
                                 .kernels = kernel_table(Backend::kCpu),
                                 .clock = clock,
                                 .steps = is_one_graph(run) ? kStepsWithoutFlush : steps + 1,
                                 .launch = {.watchdog_timeout = std::chrono::minutes(1)},
                                 .kernel_times = watcher(clock)});
    if (trained.failure)
      throw std::runtime_error(fmt::format("{}: {}", run.plan.name, trained.failure->cause));
    if (is_one_graph(run))  // the last step holds the times of all
      trained.steps.erase(trained.steps.begin(), trained.steps.end() - 1);
    else
      trained.steps.erase(trained.steps.begin());  // warm-up
    return trained;
  }

  /// Flushless schedules are predicted, trained and compared over several steps together.
  static constexpr int kStepsWithoutFlush = 4;
  static bool is_one_graph(const Measured& run) {
    return updates_without_flush(run.completed.strategy);
  }

  std::function<void(std::vector<TimedKernels>)> watcher(TimelineClock clock) {
    if (!flags_.kernels || clock != TimelineClock::kVirtual) return {};
    return [this](std::vector<TimedKernels> timed) {
      std::ranges::move(timed, std::back_inserter(watched_));
    };
  }

  void measure(Measured& run) {
    TrainingRun trained = train_by(run, TimelineClock::kVirtual, *base_, flags_.steps);
    for (const MeasuredStep& step : trained.steps) {
      run.steps.push_back(timeline_of(run.graph, step.times));
      run.steps.back().origin = TimelineOrigin::kMeasured;
      run.steps.back().clock = TimelineClock::kVirtual;
      run.times.push_back(step.times);
    }
    run.peak = std::move(trained.peak_memory);
    if (!flags_.wall) return;
    for (const MeasuredStep& step : train_by(run, TimelineClock::kWall, *base_, flags_.steps).steps)
      run.wall.push_back(step_time(timeline_of(run.graph, step.times)));
  }

  Calibration calibration_of_session() const {
    Calibration calibration = blank_calibration();
    calibration.kernels = kernel_curves(timed_);
    calibration.machine->noise = noise_of(calibration, passes_);
    return calibration;
  }

  std::unique_ptr<CostModel> costs_of(const Calibration& calibration) const {
    return make_calibrated_cost_model(make_device_cost_model(cluster_), calibration);
  }

  Timeline predict(const Measured& run, const CostModel& costs) const {
    const std::vector<WorkPrice> prices = price_works(run.graph.parts, run.graph.works, costs);
    return timeline_of(run.graph, simulate(run.graph, prices));
  }

  /// Median error of a few replayed steps, slowed down to at least a second and enough for the
  /// wake-up latency of a busy system at every synchronization.
  double replay_error(const Measured& run, const CostModel& costs, Ticks predicted) {
    constexpr int kSteps = 3;
    constexpr double kSecondsOfMeeting = 5e-3;
    const double seconds =
        calm_ * std::max(1.0, kSecondsOfMeeting * static_cast<double>(most_meetings(run.graph)));
    const int factor = static_cast<int>(std::ceil(seconds / to_seconds(predicted).value));
    const SlowMotion slow(costs, factor);
    std::vector<double> errors;
    for (const MeasuredStep& step : train_by(run, TimelineClock::kReplay, slow, kSteps).steps)
      errors.push_back(
          *relative_error(predicted * factor, step_time(timeline_of(run.graph, step.times))));
    std::sort(errors.begin(), errors.end());
    return errors[errors.size() / 2];
  }

  int report(const Calibration& calibration) {
    const std::unique_ptr<CostModel> costs = costs_of(calibration);
    if (flags_.kernels) fmt::print("{}\n", kernel_errors(watched_, *costs));
    std::unique_ptr<CostModel> stored;
    if (!flags_.stored.empty())
      stored = costs_of(calibration_from_json(read_file(flags_.stored), flags_.stored));
    Table table{.columns = {{"plan", Align::kLeft},
                            {"ranks"},
                            {"predicted"},
                            {"virtual"},
                            {"error"},
                            {"typical"},
                            {"stored"},
                            {"wall"},
                            {"memory"},
                            {"replay"}},
                .rows = {}};
    double sum = 0, worst = 0, typical_sum = 0, typical_worst = 0, stored_sum = 0, stored_worst = 0,
           replay_worst = 0;
    for (Measured& run : runs_) {
      const Timeline predicted = predict(run, *costs);
      std::vector<std::string> row{run.plan.name, std::to_string(run.graph.ranks.size()),
                                   milliseconds(step_time(predicted))};
      if (flags_.trains()) {
        const ValidationReport found = compare_steps(run, predicted);
        const double error = *step_error(found);
        sum += std::abs(error);
        worst = std::max(worst, std::abs(error));
        row.push_back(milliseconds(found.measured_step));
        row.push_back(percent(error));
        const double typical =
            relative_error(step_time(predicted), typical_step(run.graph, run.times, *costs))
                .value_or(0);
        typical_sum += std::abs(typical);
        typical_worst = std::max(typical_worst, std::abs(typical));
        row.push_back(percent(typical));
        if (flags_.verbose) print_details(run, found);
        if (stored) {
          const double e = *relative_error(step_time(predict(run, *stored)), found.measured_step);
          stored_sum += std::abs(e);
          stored_worst = std::max(stored_worst, std::abs(e));
          row.push_back(percent(e));
        } else {
          row.push_back("-");
        }
        row.push_back(wall_text(run));
        row.push_back(memory_text(predicted, run));
      } else {
        row.resize(row.size() + 6, "-");
      }
      if (flags_.replays()) {
        const double replay = replay_error(run, *costs, step_time(predicted));
        replay_worst = std::max(replay_worst, std::abs(replay));
        row.push_back(fmt::format("{:+.2f} %", 100 * replay));
      } else {
        row.push_back("-");
      }
      table.rows.push_back(std::move(row));
    }
    const double mean = sum / static_cast<double>(runs_.size());
    fmt::print("{}\n{} plans\n", to_text(table), runs_.size());
    if (flags_.replays()) fmt::print("replay: worst {:.2f} %\n", 100 * replay_worst);
    if (flags_.trains()) {
      fmt::print("virtual: mean {:.1f} %, worst {:.1f} %\n", 100 * mean, 100 * worst);
      fmt::print("typical steps: mean {:.1f} %, worst {:.1f} %\n",
                 100 * typical_sum / static_cast<double>(runs_.size()), 100 * typical_worst);
    }
    if (stored)
      fmt::print("stored calibration: mean {:.1f} %, worst {:.1f} %\n",
                 100 * stored_sum / static_cast<double>(runs_.size()), 100 * stored_worst);
    if (!left_out_.empty()) fmt::print("skipped, not supported: {}\n", fmt::join(left_out_, "; "));
    return mean <= kVirtualMean && worst <= kVirtualWorst && replay_worst <= kReplayLimit ? 0 : 1;
  }

  ValidationReport compare_steps(const Measured& run, const Timeline& predicted) const {
    std::vector<Timeline> with_warm_up{run.steps.front()};
    with_warm_up.insert(with_warm_up.end(), run.steps.begin(), run.steps.end());
    return compare({predicted, "predicted"}, {join_steps(with_warm_up), "measured"});
  }

  void print_details(const Measured& run, const ValidationReport& found) const {
    fmt::print(stderr, "{}\n", run.plan.name);
    for (const ComparedTasks& kind : found.by_kind)
      fmt::print(stderr, "    {:<12} {:>10} {:>10} {}\n", kind.name, milliseconds(kind.predicted),
                 milliseconds(kind.measured),
                 percent(relative_error(kind.predicted, kind.measured).value_or(0)));
  }

  static std::string milliseconds(Ticks time) {
    return fmt::format("{:.3f} ms", 1e3 * to_seconds(time).value);
  }
  static std::string percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }
  static std::string wall_text(const Measured& run) {
    if (run.wall.empty()) return "-";
    std::vector<Ticks> times = run.wall;
    std::sort(times.begin(), times.end());
    return fmt::format("{} ({:.0f} to {:.0f})", milliseconds(times[times.size() / 2]),
                       1e3 * to_seconds(times.front()).value, 1e3 * to_seconds(times.back()).value);
  }
  static std::string memory_text(const Timeline& predicted, const Measured& run) {
    Bytes most, counted;
    for (const MemorySample& sample : predicted.memory)
      most = std::max(most, total(sample.amounts) - sample.amounts[MemoryClass::kReserved]);
    for (const MemoryAmounts& peak : run.peak) counted = std::max(counted, total(peak));
    if (most == counted) return "equal";
    return fmt::format("{:+.2f} %", 100 * relative_error(most, counted).value_or(0));
  }

  const Flags& flags_;
  double calm_;
  Cluster cluster_;
  std::unique_ptr<CostModel> base_;
  TokenText text_;
  std::vector<Measured> runs_;
  std::vector<std::string> left_out_;
  std::vector<TimedKernels> timed_;    ///< measured in the probes
  std::vector<WaitingProbe> passes_;   ///< of tensor ranks in the probes
  std::vector<TimedKernels> watched_;  ///< measured in the runs
};

int main_of(int argc, char** argv) {
  CLI::App app("Predicts and runs many plans on this machine and prints the prediction errors.",
               "validate");
  Flags flags;
  app.add_flag("--quick", flags.quick, "run every third plan only");
  app.add_flag("--wall", flags.wall, "also measure by the wall clock");
  app.add_flag("--verbose", flags.verbose, "print errors by task kind");
  app.add_flag("--kernels", flags.kernels, "print errors by kernel (adds measurement overhead)");
  app.add_option("--steps", flags.steps, "steps per plan and round, plus one warm-up step");
  app.add_option("--rounds", flags.rounds, "rounds through all plans");
  app.add_option("--attempts", flags.attempts,
                 "attempts to meet the limits; replays are slower in each");
  app.add_option("--only", flags.only,
                 "run only plans with this text in their names; may be repeated");
  app.add_option("--clocks", flags.clocks, "clocks to run: virtual, replay or both")
      ->check(CLI::IsMember({"virtual", "replay", "both"}));
  app.add_option("--stored", flags.stored, "calibration file to compare with");
  app.add_option("--write", flags.write,
                 "write the calibration measured between the runs to this file");
  CLI11_PARSE(app, argc, argv);
  int exit_code = 1;
  double calm = 1;
  for (int attempt = 0; attempt < flags.attempts && exit_code != 0; ++attempt, calm *= 3)
    exit_code = Validation(flags, calm).run();
  return exit_code;
}

}  // namespace
}  // namespace meshwright

int main(int argc, char** argv) { return meshwright::main_of(argc, argv); }
