/// A job to look at: from a plan file, or from --model, --cluster, --gpus and strategy flags.
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
  std::string plan_file;       ///< "-": standard input; empty: flags say what the job is
  std::string model, cluster;  ///< preset names or files
  std::string calibration;     ///< file; empty: none
  std::optional<int> gpus;     ///< absent: what the degrees multiply to
  StrategyFlags strategy;
};

struct Job {
  PlanFile file;  ///< the plan, and the texts that model and cluster are from
  ModelGraph model;
  Cluster cluster;
  std::unique_ptr<CostModel> cost_model;
};

void add_job_flags(CLI::App& app, JobFlags& flags);

void add_calibration_flag(CLI::App& app, std::string& calibration_file);
/// The cluster that --cluster names; this-machine is the one that --calibration was measured on, if
/// that is given.
NamedText find_cluster(const std::string& name, const std::string& calibration_file);
/// What --calibration names; for this-machine its own, if nothing is named.
std::optional<Calibration> calibration_for(const Cluster& cluster,
                                           const std::string& calibration_file);
/// What prices are by: the cluster's figures, and in front of them what was measured.
std::unique_ptr<CostModel> make_cost_model(const Cluster& cluster,
                                           const std::optional<Calibration>& calibration);
/// For plan files (PlanFile::calibration).
std::string text_of(const std::optional<Calibration>& calibration);

/// Throws UsageError when neither or both ways are used, InputError when what they name is not
/// sound.
Job load_job(const JobFlags& flags);

}  // namespace meshwright
