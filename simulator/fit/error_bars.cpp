#include "simulator/fit/error_bars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "simulator/fit/csv_table.hpp"

namespace meshwright {
namespace {

constexpr double kRepeatability = 0.05;  // standard deviation of log(measured / predicted)
constexpr double kNear = 1.0;            // distance within which a run validates a prediction
constexpr double kFar = 4.0;             // weights beyond it are below 0.0004
constexpr double kLowQuantile = 0.1, kHighQuantile = 0.9;

// Distances that count as one: another generation of the same trainer, another dtype class, …
constexpr double kOtherDevice = 0.5;        // of the same architecture
constexpr double kOtherArchitecture = 1.5;  // compute capability differs
constexpr double kOtherTrainer = 0.7;
constexpr double kOtherWidth = 0.7;   // per halving of the bits
constexpr double kOtherLayers = 1.0;  // dense or mixture of experts
constexpr double kOtherSharding = 0.5;
constexpr double kPerDoubling = 0.12;  // of devices, parameters, sequence length
constexpr double kPerLaunchShare = 2.0;

double squared(double x) { return x * x; }

double device_distance(const JobTraits& a, const JobTraits& b) {
  if (a.device == b.device) return 0;
  return a.compute_capability / 10 == b.compute_capability / 10 && a.compute_capability > 0
             ? kOtherDevice
             : kOtherArchitecture;
}

struct Component {
  double x = 0, weight = 0;
};

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

/// Quantile of the mixture of N(x, kRepeatability); weights add up to `total`. By bisection.
double quantile(std::span<const Component> mixture, double total, double share) {
  double low = mixture.front().x, high = low;
  for (const Component& c : mixture) {
    low = std::min(low, c.x);
    high = std::max(high, c.x);
  }
  constexpr double kTail = 10 * kRepeatability;
  low -= kTail;
  high += kTail;
  constexpr int kHalvings = 40;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    double below = 0;
    for (const Component& c : mixture)
      below += c.weight * normal_cdf((middle - c.x) / kRepeatability);
    (below < share * total ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

JobTraits traits_of(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                    const Trainer& trainer, const Evaluation& evaluation) {
  const DeviceModel& device = device_of(cluster, DeviceId(0));
  const auto is_expert = [](const Operator& op) {
    return std::holds_alternative<ExpertLinear>(op.shape);
  };
  constexpr int kBitsPerByte = 8;
  return {.device = device.name,
          .compute_capability = device.compute_capability.value_or(0),
          .trainer = trainer.name,
          .bits = kBitsPerByte * bytes_per_element(strategy.dtype),
          .experts = std::any_of(model.operators.begin(), model.operators.end(), is_expert),
          .sharded_parameters = strategy.zero == 3,
          .log2_devices = std::log2(static_cast<double>(rank_count(strategy.degrees))),
          .log2_parameters = std::log2(static_cast<double>(parameter_count(model))),
          .log2_sequence = std::log2(static_cast<double>(strategy.sequence_length)),
          .launch_share = step_shares(evaluation).launch};
}

double distance(const JobTraits& a, const JobTraits& b) {
  double sum = squared(device_distance(a, b));
  if (a.trainer != b.trainer) sum += squared(kOtherTrainer);
  sum += squared(kOtherWidth * std::log2(static_cast<double>(a.bits) / b.bits));
  if (a.experts != b.experts) sum += squared(kOtherLayers);
  if (a.sharded_parameters != b.sharded_parameters) sum += squared(kOtherSharding);
  sum += squared(kPerDoubling * (a.log2_devices - b.log2_devices));
  sum += squared(kPerDoubling * (a.log2_parameters - b.log2_parameters));
  sum += squared(kPerDoubling * (a.log2_sequence - b.log2_sequence));
  sum += squared(kPerLaunchShare * (a.launch_share - b.launch_share));
  return std::sqrt(sum);
}

std::optional<ErrorBar> error_bar(const JobTraits& job, std::span<const ValidatedRun> runs,
                                  std::string_view without) {
  ErrorBar bar;
  std::set<std::string> near;
  std::map<std::string_view, double> weight_of_source;
  std::vector<std::pair<const ValidatedRun*, double>> weighed;
  for (const ValidatedRun& run : runs) {
    if (run.source == without) continue;
    const double d = distance(job, run.traits);
    if (d > kFar) continue;
    if (d < kNear) {
      ++bar.runs;
      near.insert(run.source);
    }
    const double weight = std::exp(-d * d / 2);
    weighed.emplace_back(&run, weight);
    weight_of_source[run.source] += weight;
  }
  if (bar.runs == 0) return std::nullopt;
  std::vector<Component> mixture;
  double total = 0;
  for (const auto& [run, weight] : weighed) {
    mixture.push_back({run->log_error, weight / std::sqrt(weight_of_source[run->source])});
    total += mixture.back().weight;
  }
  bar.p10 = std::exp(quantile(mixture, total, kLowQuantile));
  bar.p90 = std::exp(quantile(mixture, total, kHighQuantile));
  bar.sources.assign(near.begin(), near.end());
  return bar;
}

std::optional<StepTimeRange> range_of(Ticks step_time, const std::optional<ErrorBar>& bar) {
  if (!bar) return std::nullopt;
  const double seconds = to_seconds(step_time).value;
  return StepTimeRange{.p10 = to_ticks(Seconds(bar->p10 * seconds)),
                       .p90 = to_ticks(Seconds(bar->p90 * seconds)),
                       .validated_runs = bar->runs};
}

bool equal_within_error(const StepTimeRange& a, const StepTimeRange& b) {
  return a.p10 <= b.p90 && b.p10 <= a.p90;
}

std::string to_csv(std::span<const ValidatedRun> runs) {
  std::string text =
      "source,run,measured_over_predicted,device,compute_capability,trainer,bits,experts,"
      "sharded_parameters,devices,parameters,sequence,launch_percent\n";
  for (const ValidatedRun& run : runs) {
    const JobTraits& t = run.traits;
    text += fmt::format("{},{},{:.4f},{},{},{},{},{},{},{:.0f},{:.4g},{:.0f},{:.1f}\n", run.source,
                        run.id, std::exp(run.log_error), t.device, t.compute_capability, t.trainer,
                        t.bits, t.experts ? 1 : 0, t.sharded_parameters ? 1 : 0,
                        std::exp2(t.log2_devices), std::exp2(t.log2_parameters),
                        std::exp2(t.log2_sequence), 100 * t.launch_share);
  }
  return text;
}

std::vector<ValidatedRun> validated_runs_from_csv(std::string_view text, const std::string& file) {
  const CsvTable table = read_csv_table(text, file);
  std::vector<ValidatedRun> runs;
  for (const CsvTable::Row& row : table.rows) {
    const auto number = [&](std::string_view column) { return number_in(table, row, column); };
    const auto flag = [&](std::string_view column) { return table.text(row, column) == "1"; };
    const auto whole = [&](std::string_view column) {  // 0 is written as such
      return table.text(row, column) == "0" ? 0 : static_cast<int>(number(column));
    };
    const std::string& launch = table.text(row, "launch_percent");
    runs.push_back(
        {.source = table.text(row, "source"),
         .id = table.text(row, "run"),
         .traits = {.device = table.text(row, "device"),
                    .compute_capability = whole("compute_capability"),
                    .trainer = table.text(row, "trainer"),
                    .bits = static_cast<int>(number("bits")),
                    .experts = flag("experts"),
                    .sharded_parameters = flag("sharded_parameters"),
                    .log2_devices = std::log2(number("devices")),
                    .log2_parameters = std::log2(number("parameters")),
                    .log2_sequence = std::log2(number("sequence")),
                    .launch_share = launch == "0.0" ? 0 : number("launch_percent") / 100},
         .log_error = std::log(number("measured_over_predicted"))});
  }
  return runs;
}

}  // namespace meshwright
