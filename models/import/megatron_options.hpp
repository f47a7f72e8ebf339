/// Parts of import_megatron(): the inverse of models/launch/megatron_model.cpp and
/// megatron_settings.cpp. Defaults are those of megatron/training/arguments.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/builders/transformer_config.hpp"
#include "models/import/import_job.hpp"
#include "models/import/option_reader.hpp"

namespace meshwright {

/// The model; `job` has its strategy already, and receives notes.
TransformerConfig read_megatron_model(OptionReader& options, ImportedJob& job);
/// Strategy, layers per stage and notes for `ranks` GPUs.
void read_megatron_strategy(OptionReader& options, std::int64_t ranks, std::int64_t layers,
                            ImportedJob& job);

/// "Et*3|(tt|)*29,m|L" → layers per stage; empty if the text is not a layout. m: layers of
/// multi-token prediction, which are left out.
std::vector<int> layers_of_layout(std::string_view layout);
/// A frequency of layers: 2 → every second layer from the first one on; "([0]*3+[1]*58)" → a list.
/// Empty if the text is neither, or the list has another length.
std::vector<bool> layers_of_pattern(std::string_view pattern, std::int64_t layers);

/// True if an option of Megatron-LM changes time or memory.
bool affects_time_or_memory(std::string_view option);

}  // namespace meshwright
