/// The plans of `./dev validate`. To add one, add a line to validation_plans().
#pragma once

#include <string>
#include <vector>

#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

struct ValidationPlan {
  std::string name;  ///< "small gpt, dp 2"
  ModelGraph model;  ///< without dropout
  Strategy strategy;
};

/// The caller skips plans that check_runnable() rejects.
std::vector<ValidationPlan> validation_plans();

}  // namespace meshwright
