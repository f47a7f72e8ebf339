/// The plans that prediction and measurement are compared over. To add one, add a line to
/// validation_plans().
#pragma once

#include <string>
#include <vector>

#include "core/model_graph.hpp"
#include "core/plan.hpp"

namespace meshwright {

struct ValidationPlan {
  std::string name;  ///< "small gpt, dp 2"
  ModelGraph model;  ///< without dropout
  Strategy strategy;
};

/// Whatever cannot be carried out yet (check_runnable) is left out by the reader of the list.
std::vector<ValidationPlan> validation_plans();

}  // namespace meshwright
