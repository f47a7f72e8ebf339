#include "simulator/fit/fit_collectives.hpp"

#include <ceres/ceres.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/base/check.hpp"
#include "core/cluster/visit_collective_parameters.hpp"
#include "core/trainer/trainer.hpp"
#include "simulator/cost/device_cost_model.hpp"

namespace meshwright {
namespace {

constexpr double kMicroFit = 1e-6;
constexpr double kCollectiveRobustScale = 0.1;  ///< errors above this count less than their square
/// Weight of the distance from the start, in units of the parameter's scale, against a relative
/// error: a parameter moves by its whole scale if that explains 2 % of one row.
constexpr double kCollectivePullWeight = 0.02;

/// What a fit may choose, narrower than what is valid. Seconds are in microseconds.
struct CollectiveRange {
  std::string_view key;
  double least, most, scale;
};
constexpr CollectiveRange kLocalRanges[] = {
    {"small_base", 1, 60, 10}, {"large_base", 1, 60, 10},     {"base", 1, 60, 10},
    {"hop", 0.05, 6, 2},       {"bandwidth", 0.2, 1.4, 0.3},  {"blend", 0.4, 3, 1},
    {"own_part", 0, 1.5, 0.5}, {"pcie_crowding", 0.1, 1, 0.5}};
/// A network never carries more than its ports; NCCL's estimate may round them down by a few
/// percent.
constexpr CollectiveRange kNetworkRanges[] = {{"base", 0, 400, 50},
                                              {"hop", 0.05, 30, 2},
                                              {"bandwidth", 0.2, 1.05, 0.3},
                                              {"all_to_all", 0.2, 1.05, 0.3},
                                              {"blend", 0.4, 3, 1}};

CollectiveRange range_of(std::span<const CollectiveRange> ranges, std::string_view key) {
  const auto range = std::find_if(ranges.begin(), ranges.end(),
                                  [&](const CollectiveRange& r) { return r.key == key; });
  MW_CHECK(range != ranges.end());
  return *range;
}

/// Calls visit(range, get, set) for every parameter, always in the same order.
template <class Visit>
struct RangedVisit {
  std::span<const CollectiveRange> ranges;
  Visit& visit;
  void operator()(std::string_view key, double& value, ParameterBounds /*valid*/) const {
    visit(range_of(ranges, key), value, [&](double v) { value = v; });
  }
  void operator()(std::string_view key, Seconds& value, ParameterBounds /*valid*/) const {
    visit(range_of(ranges, key), value.value / kMicroFit,
          [&](double v) { value = Seconds(v * kMicroFit); });
  }
  void operator()(std::string_view key, std::optional<Seconds>& value,
                  ParameterBounds /*valid*/) const {
    visit(range_of(ranges, key), value.value_or(Seconds()).value / kMicroFit,
          [&](double v) { value = Seconds(v * kMicroFit); });
  }
  void operator()(std::string_view key, std::optional<double>& value,
                  ParameterBounds /*valid*/) const {
    visit(range_of(ranges, key), value.value_or(1.0), [&](double v) { value = v; });
  }
};

struct ParameterSet {
  CollectiveParameters device;
  NetworkParameters network;
};

template <class Visit>
void visit_all(ParameterSet& set, const CollectiveFitScope& scope, Visit visit) {
  if (scope.device) {
    const RangedVisit<Visit> local{kLocalRanges, visit};
    visit_parameters_of_collectives(set.device, local);
    visit_collective_tables(set.device, [&](std::string_view, auto& table) {
      visit_parameters_of_table(table, local);
    });
  }
  if (scope.network)
    visit_parameters_of_network(set.network, RangedVisit<Visit>{kNetworkRanges, visit});
}

struct Variables {
  std::vector<double> values, least, most, scale;
};
Variables variables_of(ParameterSet set, const CollectiveFitScope& scope) {
  Variables variables;
  visit_all(set, scope, [&](const CollectiveRange& range, double value, auto&& /*set*/) {
    variables.values.push_back(std::clamp(value, range.least, range.most));
    variables.least.push_back(range.least);
    variables.most.push_back(range.most);
    variables.scale.push_back(range.scale);
  });
  return variables;
}
void assign(ParameterSet& set, const CollectiveFitScope& scope, const double* values) {
  visit_all(set, scope, [&](const CollectiveRange& /*range*/, double /*value*/, auto&& put) {
    put(*values++);
  });
}
void assign(std::vector<Cluster>& clusters, const CollectiveFitScope& scope,
            const ParameterSet& set) {
  for (Cluster& cluster : clusters) {
    for (auto& [key, device] : cluster.devices)
      if (scope.device) device.collectives = set.device;
    if (scope.network) cluster.fabric.collectives = set.network;
  }
}

/// All rows and the pull towards the start, as one block of residuals: parameters are shared by all
/// rows, and a cost model is built once per set of parameters.
struct CollectiveResiduals {
  mutable std::vector<Cluster> clusters;
  std::span<const MeasuredCollective> rows;
  CollectiveFitScope scope;
  mutable ParameterSet set;
  Variables start;

  bool operator()(double const* const* parameters, double* residuals) const {
    assign(set, scope, parameters[0]);
    assign(clusters, scope, set);
    const std::vector<double> errors = collective_errors(clusters, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double x = rows[i].weight * std::log1p(errors[i]) / kCollectiveRobustScale;
      residuals[i] =
          kCollectiveRobustScale * std::copysign(std::sqrt(2 * (std::sqrt(1 + x * x) - 1)), x);
    }
    for (std::size_t i = 0; i < start.values.size(); ++i)
      residuals[rows.size() + i] =
          kCollectivePullWeight * (parameters[0][i] - start.values[i]) / start.scale[i];
    return true;
  }
};

bool minimize(const CollectiveResiduals& residuals, std::vector<double>& values) {
  ceres::NumericDiffOptions differences;
  differences.relative_step_size = 1e-4;
  auto cost =
      std::make_unique<ceres::DynamicNumericDiffCostFunction<CollectiveResiduals, ceres::CENTRAL>>(
          new CollectiveResiduals(residuals), ceres::TAKE_OWNERSHIP, differences);
  cost->AddParameterBlock(static_cast<int>(values.size()));
  cost->SetNumResiduals(static_cast<int>(residuals.rows.size() + values.size()));
  ceres::Problem problem;
  problem.AddResidualBlock(cost.release(), nullptr, values.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int index = static_cast<int>(i);
    problem.SetParameterLowerBound(values.data(), index, residuals.start.least[i]);
    problem.SetParameterUpperBound(values.data(), index, residuals.start.most[i]);
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = 200;
  options.num_threads = 1;
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  return summary.termination_type == ceres::CONVERGENCE;
}

}  // namespace

CollectiveParameters plain_collective_parameters() {
  CollectiveParameters parameters;
  // NCCL's base latencies (tuning.cc) rounded.
  parameters.ll.base = Seconds(7e-6);
  parameters.ll128.base = Seconds(14e-6);
  parameters.simple.base = Seconds(10e-6);
  parameters.nvls.base = Seconds(10e-6);
  parameters.own_part = 0.4;
  parameters.all_to_all.small_base = Seconds(8e-6);
  parameters.all_to_all.large_base = Seconds(14e-6);
  parameters.all_to_all.own_part = 0.2;
  return parameters;
}

std::vector<double> collective_errors(std::span<const Cluster> clusters,
                                      std::span<const MeasuredCollective> rows) {
  std::vector<std::unique_ptr<CostModel>> models;
  for (const Cluster& cluster : clusters)
    models.push_back(make_device_cost_model(cluster, Trainer{}));
  std::vector<double> errors;
  errors.reserve(rows.size());
  for (const MeasuredCollective& row : rows) {
    MW_CHECK(row.cluster < models.size());
    errors.push_back(models[row.cluster]->time_of(row.collective).value / row.time.value - 1);
  }
  return errors;
}

CollectiveFit fit_collectives(std::vector<Cluster> clusters,
                              std::span<const MeasuredCollective> rows,
                              const CollectiveFitScope& scope) {
  MW_CHECK(!clusters.empty());
  const Cluster& first = clusters.front();
  const DeviceModel& device = first.devices.at(first.nodes.at(first.groups.front().node).device);
  ParameterSet set{device.collectives.value_or(plain_collective_parameters()),
                   first.fabric.collectives};
  const Variables start = variables_of(set, scope);
  std::vector<double> values = start.values;
  CollectiveFit fit;
  fit.converged = minimize({clusters, rows, scope, set, start}, values);
  assign(set, scope, values.data());
  assign(clusters, scope, set);
  fit.device = set.device;
  fit.network = set.network;
  fit.errors = collective_errors(clusters, rows);
  return fit;
}

}  // namespace meshwright
