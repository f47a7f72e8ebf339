/// The tokens of a micro-batch.
#pragma once

#include "core/plan/plan.hpp"
#include "executor/operators/microbatch_state.hpp"
#include "executor/ranks/training_options.hpp"

namespace meshwright {

struct MicrobatchPlace {
  std::int64_t step = 0, microbatch = 0;  ///< training step; micro-batch within the step
  int data = 0, context = 0;              ///< data-parallel and context-parallel rank
};
TokenRows token_rows(const TokenText& text, const Strategy& strategy, const MicrobatchPlace& place);

}  // namespace meshwright
