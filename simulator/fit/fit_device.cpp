#include "simulator/fit/fit_device.hpp"

#include <ceres/ceres.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/base/check.hpp"
#include "simulator/fit/fit_parameters.hpp"

namespace meshwright {
namespace {

constexpr double kRobustScale = 0.05;     ///< of ln(predicted / measured): noise of one row
constexpr double kPull = 0.05;            ///< weight of the pull towards the start value
constexpr int kLeastKernels = 4;          ///< that a fitted parameter must affect
constexpr double kVisibleEffect = 0.005;  ///< on ln(predicted) over the range of a parameter
constexpr double kStep = 2e-3;            ///< of numeric differences: beyond the kinks of tiles

/// One parameter's place on [1, 2], where numeric differences with a relative step work well.
double to_unit(double value, const FitParameter& p) {
  return 1 + (std::clamp(value, p.least, p.most) - p.least) / (p.most - p.least);
}
double from_unit(double unit, const FitParameter& p) {
  return p.least + std::clamp(unit - 1, 0.0, 1.0) * (p.most - p.least);
}

/// Four significant digits: more would only make files longer.
double rounded(double value) { return value == 0 ? 0 : std::stod(fmt::format("{:.3e}", value)); }

/// A constant of a source that is no property of the device.
enum class ConstantRole : std::uint8_t {
  kHostTime,  ///< seconds in addition
  kExtra,     ///< time of MeasuredKernel::extra relative to a stream
  kFactor     ///< of the whole time
};
struct SourceConstant {
  ConstantRole role = ConstantRole::kFactor;
  double unit = 1;  ///< fitted
  double start = 1;
  FitParameter range{};
};
SourceConstant source_constant(ConstantRole role, const std::string& name) {
  SourceConstant constant{.role = role};
  double start = 1;
  switch (role) {
    case ConstantRole::kHostTime:
      constant.range = {name, 0, 100e-6};
      start = 5e-6;
      break;
    case ConstantRole::kExtra:
      constant.range = {name, 0, 10};
      break;
    case ConstantRole::kFactor:
      constant.range = {name, 0.5, 2};
      break;
  }
  constant.unit = constant.start = to_unit(start, constant.range);
  return constant;
}

/// The kernels of a device and the variables that they depend on.
class DeviceProblem {
 public:
  DeviceProblem(const DeviceModel& start, std::vector<const MeasuredKernel*> kernels)
      : start_(start), kernels_(std::move(kernels)) {
    for (int g = 0; g < kParameterGroupCount; ++g) open_group(g);
    for (const MeasuredKernel* kernel : kernels_)
      for (const auto& [role, name] : constants_of(*kernel))
        constants_.try_emplace(name, source_constant(role, name));
    for (int g = 0; g < kParameterGroupCount; ++g) choose_parameters(g);
  }

  void solve();
  DeviceModel device() const { return device_with(all_groups()); }
  /// Keys of the fitted parameters, with the kernels that they were fitted to.
  std::map<std::string, std::vector<const MeasuredKernel*>> fitted() const;
  double predicted(const MeasuredKernel& kernel, const DeviceModel& device) const;
  std::vector<std::string> notes() const;

 private:
  friend struct RowError;
  struct Group {
    FitGroup access;
    std::vector<double> values;        ///< of all parameters
    std::vector<std::size_t> free;     ///< indices of the fitted ones
    std::vector<double> units, start;  ///< of the fitted ones
  };
  struct Change {
    int group;
    const double* units;
  };

  void open_group(int g);
  void choose_parameters(int g);
  std::vector<const MeasuredKernel*> kernels_of(int g) const;
  std::vector<int> all_groups() const;
  DeviceModel device_with(const std::vector<int>& groups) const;
  void apply(const Change& change, DeviceModel& device) const;
  /// The constants that a kernel's time depends on, by name.
  using Constants = std::vector<std::pair<ConstantRole, std::string>>;
  Constants constants_of(const MeasuredKernel& row) const;
  bool trains_like(const MeasuredKernel& row) const;
  std::set<int> groups_of_row(const MeasuredKernel& row) const;
  void add_row(ceres::Problem& problem, const MeasuredKernel& row);
  void add_pull(ceres::Problem& problem, double* units, const std::vector<double>& start) const;

  DeviceModel start_;
  std::vector<const MeasuredKernel*> kernels_;
  std::vector<Group> groups_;
  std::map<std::string, SourceConstant> constants_;
  bool is_solved_ = false;  ///< Group::values are the fitted ones
};

/// FlashAttention-2 is the fastest library for devices of its generation and small relatives.
constexpr int kHopper = 90, kLastOfBlackwellDatacenter = 110;
bool has_newer_attention(const DeviceModel& device) {
  const int capability = device.compute_capability.value_or(0);
  return capability >= kHopper && capability < kLastOfBlackwellDatacenter;
}
bool is_flash_attention_2(const MeasuredKernel& row, const DeviceModel& device) {
  return row.flash_attention_2 && has_newer_attention(device);
}

KernelConditions conditions_of(const MeasuredKernel& row, const DeviceModel& device) {
  const bool sustained =
      row.method == MeasuringMethod::kSustained || row.method == MeasuringMethod::kRunning;
  return {.power = sustained ? PowerState::kSustained : PowerState::kBurst,
          .attention = is_flash_attention_2(row, device) ? AttentionLibrary::kFlashAttention2
                                                         : AttentionLibrary::kNewest};
}

/// Seconds, with the constants of the source. Profilers do not count the gap before a kernel.
double time_with(const MeasuredKernel& row, const DeviceModel& device,
                 const std::vector<std::pair<ConstantRole, double>>& constants) {
  const KernelConditions conditions = conditions_of(row, device);
  Seconds sum;
  for (const Kernel& kernel : row.work) sum += kernel_time(kernel, device, conditions);
  const bool without_gap =
      row.method == MeasuringMethod::kKernel || row.method == MeasuringMethod::kRunning;
  if (without_gap) sum -= static_cast<double>(row.work.size()) * device.launch_overhead;
  double time = sum.value;
  for (const auto& [role, value] : constants) {
    if (role == ConstantRole::kHostTime) time += value;
    if (role == ConstantRole::kExtra)
      time += value * kernel_time(*row.extra, device, conditions).value;
    if (role == ConstantRole::kFactor) time *= value;
  }
  constexpr double kLeastSeconds = 1e-9;  // the logarithm must exist
  return std::max(time, kLeastSeconds);
}

bool is_attention(const MeasuredKernel& row) {
  return row.work.front().kind == KernelKind::kAttention;
}
bool is_inference(const MeasuredKernel& row) {
  return is_attention(row) && row.source == "ai-dynamo/aiconfigurator";
}

void DeviceProblem::open_group(int g) {
  Group group;
  group.access = fit_group(g);
  group.values = group.access.get(start_);
  groups_.push_back(std::move(group));
}

/// True if enough kernels of training programs show what such a kernel takes.
bool DeviceProblem::trains_like(const MeasuredKernel& row) const {
  const auto alike = [&](const MeasuredKernel* other) {
    return is_attention(*other) && !is_inference(*other) && !is_flash_attention_2(*other, start_) &&
           other->work.front().phase == row.work.front().phase &&
           other->work.front().k == row.work.front().k;
  };
  return std::count_if(kernels_.begin(), kernels_.end(), alike) >= kLeastKernels;
}

DeviceProblem::Constants DeviceProblem::constants_of(const MeasuredKernel& row) const {
  if (row.method == MeasuringMethod::kHost)
    return {{ConstantRole::kHostTime,
             fmt::format("host time of {} in {}", row.family.substr(0, row.family.find(" <")),
                         row.source)}};
  Constants constants;
  if (row.extra)
    constants.emplace_back(ConstantRole::kExtra,
                           fmt::format("{} by {}", row.extra_name, row.software));
  if (is_inference(row) && trains_like(row))
    constants.emplace_back(ConstantRole::kFactor, fmt::format("attention by {}, head size {}",
                                                              row.software, row.work.front().k));
  return constants;
}

std::set<int> DeviceProblem::groups_of_row(const MeasuredKernel& row) const {
  const bool old = is_flash_attention_2(row, start_);
  std::set<int> groups;
  for (const Kernel& kernel : row.work)
    for (const int g : groups_of(kernel, old)) groups.insert(g);
  if (row.extra)
    for (const int g : groups_of(*row.extra, old)) groups.insert(g);
  return groups;
}

std::vector<const MeasuredKernel*> DeviceProblem::kernels_of(int g) const {
  std::vector<const MeasuredKernel*> affected;
  for (const MeasuredKernel* row : kernels_)
    if (groups_of_row(*row).contains(g)) affected.push_back(row);
  return affected;
}

/// Keeps the parameters that enough kernels notice. An unset sustained share is set by its kernels
/// only; burst kernels do not depend on it.
void DeviceProblem::choose_parameters(int g) {
  Group& group = groups_[static_cast<std::size_t>(g)];
  const std::vector<const MeasuredKernel*> rows = kernels_of(g);
  for (std::size_t i = 0; i < group.values.size(); ++i) {
    const FitParameter& parameter = group.access.parameters[i];
    DeviceModel low = device_with(all_groups()), high = low;
    std::vector<double> values = group.values;
    values[i] = parameter.least + 0.1 * (parameter.most - parameter.least);
    group.access.set(low, values);
    values[i] = parameter.most;
    group.access.set(high, values);
    const auto notices = [&](const MeasuredKernel* row) {
      return std::abs(std::log(time_with(*row, low, {}) / time_with(*row, high, {}))) >
             kVisibleEffect;
    };
    if (std::count_if(rows.begin(), rows.end(), notices) < kLeastKernels) continue;
    if (group.values[i] <= parameter.least && parameter.least > 0)  // unset
      group.values[i] = group.values.front();
    group.free.push_back(i);
    group.units.push_back(to_unit(group.values[i], parameter));
  }
  group.start = group.units;
}

std::vector<int> DeviceProblem::all_groups() const {
  std::vector<int> all(groups_.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void DeviceProblem::apply(const Change& change, DeviceModel& device) const {
  const Group& group = groups_[static_cast<std::size_t>(change.group)];
  std::vector<double> values = group.values;
  for (std::size_t i = 0; i < group.free.size() && !is_solved_; ++i)
    values[group.free[i]] = from_unit(change.units[i], group.access.parameters[group.free[i]]);
  group.access.set(device, values);
}

DeviceModel DeviceProblem::device_with(const std::vector<int>& groups) const {
  DeviceModel device = start_;
  for (const int g : groups) {
    const Group& group = groups_[static_cast<std::size_t>(g)];
    if (!group.free.empty()) apply({g, group.units.data()}, device);
  }
  return device;
}

/// ln(predicted / measured) of one kernel, as Ceres wants it.
struct RowError {
  const DeviceProblem& problem;
  const MeasuredKernel& row;
  std::vector<int> groups{};  ///< with fitted parameters
  std::vector<SourceConstant> constants{};

  bool operator()(double const* const* blocks, double* residual) const {
    DeviceModel device = problem.start_;
    for (std::size_t b = 0; b < groups.size(); ++b) problem.apply({groups[b], blocks[b]}, device);
    std::vector<std::pair<ConstantRole, double>> values;
    for (std::size_t c = 0; c < constants.size(); ++c)
      values.emplace_back(constants[c].role,
                          from_unit(blocks[groups.size() + c][0], constants[c].range));
    residual[0] = std::log(time_with(row, device, values) / row.time.value);
    return std::isfinite(residual[0]);
  }
};

/// kPull * (unit - start) of every parameter of a block.
struct PullError {
  std::vector<double> start;
  bool operator()(double const* const* blocks, double* residuals) const {
    for (std::size_t i = 0; i < start.size(); ++i) residuals[i] = kPull * (blocks[0][i] - start[i]);
    return true;
  }
};

template <class Error>
auto* numeric_cost(Error error) {
  ceres::NumericDiffOptions options;
  options.relative_step_size = kStep;
  return new ceres::DynamicNumericDiffCostFunction<Error, ceres::CENTRAL>(
      new Error(std::move(error)), ceres::TAKE_OWNERSHIP, options);
}

void DeviceProblem::add_row(ceres::Problem& problem, const MeasuredKernel& row) {
  RowError error{.problem = *this, .row = row};
  std::vector<double*> blocks;
  std::vector<int> sizes;
  for (const int g : groups_of_row(row)) {
    Group& group = groups_[static_cast<std::size_t>(g)];
    if (group.free.empty()) continue;
    error.groups.push_back(g);
    blocks.push_back(group.units.data());
    sizes.push_back(static_cast<int>(group.units.size()));
  }
  for (const auto& [role, name] : constants_of(row)) {
    SourceConstant& constant = constants_.at(name);
    error.constants.push_back(constant);
    blocks.push_back(&constant.unit);
    sizes.push_back(1);
  }
  if (blocks.empty()) return;
  auto* cost = numeric_cost(std::move(error));
  for (const int size : sizes) cost->AddParameterBlock(size);
  cost->SetNumResiduals(1);
  problem.AddResidualBlock(cost, new ceres::SoftLOneLoss(kRobustScale), blocks);
}

void DeviceProblem::add_pull(ceres::Problem& problem, double* units,
                             const std::vector<double>& start) const {
  if (!problem.HasParameterBlock(units)) return;
  const int size = static_cast<int>(start.size());
  auto* cost = numeric_cost(PullError{start});
  cost->AddParameterBlock(size);
  cost->SetNumResiduals(size);
  problem.AddResidualBlock(cost, nullptr, units);
  for (int i = 0; i < size; ++i) {
    problem.SetParameterLowerBound(units, i, 1);
    problem.SetParameterUpperBound(units, i, 2);
  }
}

void DeviceProblem::solve() {
  ceres::Problem problem;
  for (const MeasuredKernel* row : kernels_) add_row(problem, *row);
  for (Group& group : groups_)
    if (!group.units.empty()) add_pull(problem, group.units.data(), group.start);
  for (auto& [name, constant] : constants_) add_pull(problem, &constant.unit, {constant.start});
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = 200;
  options.function_tolerance = 1e-8;
  options.num_threads = 1;
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  MW_CHECK(summary.IsSolutionUsable());
  for (Group& group : groups_)
    for (std::size_t i = 0; i < group.free.size(); ++i) {
      const FitParameter& parameter = group.access.parameters[group.free[i]];
      group.values[group.free[i]] = rounded(from_unit(group.units[i], parameter));
    }
  is_solved_ = true;
}

std::map<std::string, std::vector<const MeasuredKernel*>> DeviceProblem::fitted() const {
  std::map<std::string, std::vector<const MeasuredKernel*>> keys;
  for (int g = 0; g < static_cast<int>(groups_.size()); ++g)
    for (const std::size_t i : groups_[static_cast<std::size_t>(g)].free)
      keys[groups_[static_cast<std::size_t>(g)].access.parameters[i].key] = kernels_of(g);
  return keys;
}

double DeviceProblem::predicted(const MeasuredKernel& row, const DeviceModel& device) const {
  std::vector<std::pair<ConstantRole, double>> values;
  for (const auto& [role, name] : constants_of(row)) {
    const auto found = constants_.find(name);
    const double usual = role == ConstantRole::kHostTime ? 0 : 1;  // a source that was not fitted
    values.emplace_back(role, found == constants_.end()
                                  ? usual
                                  : from_unit(found->second.unit, found->second.range));
  }
  return time_with(row, device, values);
}

std::vector<std::string> DeviceProblem::notes() const {
  std::vector<std::string> notes;
  for (const auto& [name, constant] : constants_) {
    const double value = from_unit(constant.unit, constant.range);
    const bool is_time = constant.role == ConstantRole::kHostTime;
    notes.push_back(is_time ? fmt::format("{}: {:.1f} us", name, 1e6 * value)
                            : fmt::format("{}: x {:.2f}", name, value));
  }
  return notes;
}

}  // namespace

ErrorFigures figures_of(std::vector<double> errors) {
  ErrorFigures figures;
  figures.kernels = static_cast<int>(errors.size());
  if (errors.empty()) return figures;
  const auto quantile = [](std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(
        std::llround(q * static_cast<double>(values.size() - 1)))];
  };
  figures.bias = quantile(errors, 0.5);
  for (double& error : errors) error = std::abs(error);
  figures.median = quantile(errors, 0.5);
  figures.p90 = quantile(errors, 0.9);
  return figures;
}

namespace {

using ErrorsByFamily = std::map<std::string, std::vector<double>>;

ErrorsByFamily errors_of(const DeviceProblem& problem,
                         const std::vector<const MeasuredKernel*>& kernels) {
  const DeviceModel device = problem.device();
  ErrorsByFamily errors;
  for (const MeasuredKernel* kernel : kernels)
    errors[kernel->family].push_back(problem.predicted(*kernel, device) / kernel->time.value - 1);
  return errors;
}

bool is_held_back(const MeasuredKernel& kernel, double holdout) {
  constexpr std::uint64_t kBuckets = 1000;
  return static_cast<double>((kernel.shape_hash >> 20) % kBuckets) < holdout * kBuckets;
}

/// "fit of 163 kernels: median error 2.3 %, p90 9.1 % (ai-dynamo/aiconfigurator)"
std::string source_text(const DeviceProblem& problem,
                        const std::vector<const MeasuredKernel*>& kernels) {
  std::vector<double> errors;
  std::set<std::string> sources;
  for (const auto& [family, list] : errors_of(problem, kernels))
    errors.insert(errors.end(), list.begin(), list.end());
  for (const MeasuredKernel* kernel : kernels)
    if (!kernel->source.empty()) sources.insert(kernel->source);
  const ErrorFigures figures = figures_of(std::move(errors));
  return fmt::format("fit of {} kernels: median error {:.1f} %, p90 {:.1f} %{}", figures.kernels,
                     100 * figures.median, 100 * figures.p90,
                     sources.empty() ? "" : fmt::format(" ({})", fmt::join(sources, ", ")));
}

/// Unmeasured families get the median of the measured ones.
void set_default_stream(const DeviceProblem& problem, DeviceFit& fit) {
  std::vector<double> shares, bytes;
  const auto fitted = problem.fitted();
  for (std::size_t i = 0; i < fit.device.streams.size(); ++i) {
    const std::string_view family = name_of(static_cast<StreamFamily>(i));
    if (!fitted.contains(fmt::format("memory_efficiency.{}.max_efficiency", family))) continue;
    shares.push_back(fit.device.streams[i]->max_efficiency);
    bytes.push_back(static_cast<double>(fit.device.streams[i]->half_speed_bytes.value));
  }
  if (shares.empty()) return;
  const std::string source = fmt::format("median of {} fitted families", shares.size());
  fit.device.memory_efficiency = {
      .max_efficiency = figures_of(std::move(shares)).bias,
      .half_speed_bytes = Bytes(static_cast<std::int64_t>(figures_of(std::move(bytes)).bias))};
  fit.sources["memory_efficiency.max_efficiency"] = source;
  fit.sources["memory_efficiency.half_speed_bytes"] = source;
}

}  // namespace

DeviceFit fit_device(const DeviceModel& start, const std::vector<MeasuredKernel>& kernels,
                     double holdout) {
  std::vector<const MeasuredKernel*> all, seen, unseen;
  for (const MeasuredKernel& kernel : kernels) {
    all.push_back(&kernel);
    (is_held_back(kernel, holdout) ? unseen : seen).push_back(&kernel);
  }
  DeviceProblem whole(start, all);
  whole.solve();
  DeviceFit fit;
  fit.device = whole.device();
  fit.notes = whole.notes();
  for (const auto& [key, rows] : whole.fitted()) fit.sources[key] = source_text(whole, rows);
  set_default_stream(whole, fit);
  ErrorsByFamily held_back;
  if (!unseen.empty() && !seen.empty()) {
    DeviceProblem part(start, seen);
    part.solve();
    held_back = errors_of(part, unseen);
  }
  for (const auto& [family, errors] : errors_of(whole, all))
    fit.families.push_back({family, figures_of(errors), figures_of(held_back[family])});
  return fit;
}

}  // namespace meshwright
