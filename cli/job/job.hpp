/// A job: from a plan file, or from --model, --cluster, --gpus and strategy flags.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/flags/strategy_flags.hpp"
#include "core/cluster/cluster.hpp"
#include "core/cost/calibration.hpp"
#include "core/cost/cost_model.hpp"
#include "core/formats/plan.hpp"
#include "core/model/model_graph.hpp"
#include "core/trainer/trainer.hpp"
#include "models/load/load.hpp"

namespace CLI {
class App;
}

namespace meshwright {

/// Where the parts of a job come from: preset names or files.
struct SourceFlags {
  std::string model, cluster;
  std::string trainer;      ///< empty: default_trainer()
  std::string calibration;  ///< file; empty: none
};

struct JobFlags {
  std::string plan_file;  ///< "-": standard input; empty: the flags describe the job
  SourceFlags sources;
  std::optional<int> gpus;  ///< absent: the product of the parallel sizes
  StrategyFlags strategy;
};

struct Job {
  PlanFile file;  ///< the plan, and the texts of model and cluster
  ModelGraph model;
  Cluster cluster;
  Trainer trainer;
  std::unique_ptr<CostModel> cost_model;
};

/// load_model(), with its warnings printed on standard error.
ModelGraph load_model_and_warn(const NamedText& config);

void add_job_flags(CLI::App& app, JobFlags& flags);

/// --model, --cluster, --trainer and --calibration.
void add_source_flags(CLI::App& app, SourceFlags& sources);
void add_calibration_flag(CLI::App& app, std::string& calibration_file);
/// The cluster named by --cluster. For this-machine with --calibration: the machine described
/// there.
NamedText find_cluster(const std::string& name, const std::string& calibration_file);
/// The calibration named by --calibration; without one, that of this-machine or none.
std::optional<Calibration> calibration_for(const Cluster& cluster,
                                           const std::string& calibration_file);
/// Measured curves where the calibration has them, else the models of the devices.
std::unique_ptr<CostModel> make_cost_model(const Cluster& cluster, const Trainer& trainer,
                                           const std::optional<Calibration>& calibration);
/// The profile named by --trainer, or the default one.
Trainer trainer_for(const Cluster& cluster, const std::string& name);
/// For plan files (PlanFile::calibration).
std::string text_of(const std::optional<Calibration>& calibration);

/// A job of a model and the other sources, with plan() for the job without one. InputError, whose
/// places start with `where`, if the plan is invalid.
Job make_job(const NamedText& model, const SourceFlags& sources,
             const std::function<Plan(const Job&)>& plan, std::string_view where = "--");

/// UsageError if neither or both of plan file and flags are given; InputError if their contents are
/// invalid.
Job load_job(const JobFlags& flags);

}  // namespace meshwright
