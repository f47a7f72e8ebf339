/// What a training program leaves of the strategy space (FixedChoices::trainer).
#pragma once

#include <vector>

#include "core/base/error.hpp"
#include "core/trainer/trainer.hpp"
#include "planner/search/fixed_choices.hpp"

namespace meshwright {

/// What FixedChoices::trainer lacks for the fixed choices, whatever the others are.
std::vector<Diagnostic> fixed_choice_problems(const FixedChoices& fixed);

/// With the default attention of the trainer, if it is not fixed: flash if the trainer has it.
FixedChoices with_attention_of_trainer(FixedChoices fixed);

/// True if stages may have any numbers of blocks; otherwise plans are cut by even_cut().
bool cuts_freely(const Trainer& trainer);

/// Of ZeRO 0 to 3, and of the bucket rules of PyTorch and Megatron-LM, those that the trainer has.
std::vector<int> zero_levels_to_search(const FixedChoices& fixed);
std::vector<BucketRule> bucket_rules_to_search(const FixedChoices& fixed);

}  // namespace meshwright
