/// What a training program leaves of the strategy space (FixedChoices::trainer).
#pragma once

#include <vector>

#include "core/base/error.hpp"
#include "core/trainer/trainer.hpp"
#include "planner/search/search.hpp"

namespace meshwright {

/// What FixedChoices::trainer lacks for the fixed choices, whatever the others are.
std::vector<Diagnostic> fixed_choice_problems(const FixedChoices& fixed);

/// True if stages may have any numbers of blocks; otherwise plans are cut by even_cut().
bool cuts_freely(const Trainer& trainer);

/// ZeRO stages to search if none is fixed: 0 and 1. Stages 2 and 3 save memory at the price of
/// communication; they are searched for programs that lack 1.
std::vector<int> zero_levels_to_search(const FixedChoices& fixed);

/// Then recomputation per operator is the only choice between none and full.
bool lacks_block_counts(const Trainer& trainer);

}  // namespace meshwright
