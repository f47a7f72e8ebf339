/// A job: from a plan file, or from --model, --cluster, --gpus and strategy flags.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/strategy_flags.hpp"
#include "core/calibration.hpp"
#include "core/cluster.hpp"
#include "core/cost_model.hpp"
#include "core/io_plan.hpp"
#include "core/model_graph.hpp"
#include "models/load.hpp"

namespace CLI {
class App;
}

namespace meshwright {

struct JobFlags {
  std::string plan_file;       ///< "-": standard input; empty: the flags describe the job
  std::string model, cluster;  ///< preset names or files
  std::string calibration;     ///< file; empty: none
  std::optional<int> gpus;     ///< absent: the product of the parallel sizes
  StrategyFlags strategy;
};

struct Job {
  PlanFile file;  ///< the plan, and the texts of model and cluster
  ModelGraph model;
  Cluster cluster;
  std::unique_ptr<CostModel> cost_model;
};

/// load_model(), with its warnings printed on standard error.
ModelGraph load_model_and_warn(const NamedText& config);

void add_job_flags(CLI::App& app, JobFlags& flags);

/// --model, --cluster and --calibration.
void add_source_flags(CLI::App& app, std::string& model, std::string& cluster,
                      std::string& calibration_file);
void add_calibration_flag(CLI::App& app, std::string& calibration_file);
/// The cluster named by --cluster. For this-machine with --calibration: the machine described
/// there.
NamedText find_cluster(const std::string& name, const std::string& calibration_file);
/// The calibration named by --calibration; without one, that of this-machine or none.
std::optional<Calibration> calibration_for(const Cluster& cluster,
                                           const std::string& calibration_file);
/// Measured curves where the calibration has them, else the analytic model of the cluster.
std::unique_ptr<CostModel> make_cost_model(const Cluster& cluster,
                                           const std::optional<Calibration>& calibration);
/// For plan files (PlanFile::calibration).
std::string text_of(const std::optional<Calibration>& calibration);

/// UsageError if neither or both of plan file and flags are given; InputError if their contents are
/// invalid.
Job load_job(const JobFlags& flags);

}  // namespace meshwright
