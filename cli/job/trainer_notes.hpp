/// What a training program cannot run of a plan, as text and JSON.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/job/job.hpp"
#include "core/base/error.hpp"
#include "core/trainer/trainer.hpp"
#include "planner/search/search.hpp"

namespace meshwright {

/// trainer_problems() of the job's plan; `where` names flags or keys of its plan file.
std::vector<Diagnostic> trainer_problems(const Job& job, const JobFlags& flags);

/// "Note: megatron-core has no schedule 'zb-v'; it has 1f1b and interleaved-1f1b.\n", one line per
/// problem.
std::string trainer_notes(std::span<const Diagnostic> problems);

/// "megatron-core cannot run plans 2 to 4 and 6: it has no schedules zb-v and dualpipe. …\n"; plans
/// are counted from 1. Empty if the trainer can run all of them.
std::string unsupported_plans_text(std::span<const RankedPlan> plans, const Trainer& trainer);

}  // namespace meshwright
