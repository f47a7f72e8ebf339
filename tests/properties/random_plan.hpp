/// Training jobs at random: a model, a cluster, a trainer, and a plan over all axes and options.
#pragma once

#include <string>

#include "core/plan/plan.hpp"
#include "tests/properties/choices.hpp"
#include "tests/properties/job_parts.hpp"

namespace meshwright {

/// Refers to JobParts.
struct RandomJob {
  const ModelPart* model = nullptr;
  const ClusterPart* cluster = nullptr;
  const Trainer* trainer = nullptr;  ///< one that can run the plan
  Plan plan;
};

struct JobLimits {
  int ranks = 32;
  int microbatches = 16;  ///< per step and replica
  /// Replace a number now and then by one that no plan can have.
  bool has_senseless_numbers = false;
};

/// The plan is not always valid: check_plan() decides.
RandomJob draw_job(const JobParts& parts, Choices& choices, const JobLimits& limits);

/// Model, cluster, trainer and plan on one line.
std::string to_text(const RandomJob& job);

}  // namespace meshwright
