/// Imports today's job: launch scripts of Megatron-LM and job files of torchtitan. The model comes
/// from the shape options, the strategy from the others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.hpp"
#include "core/plan/stage_cut.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

struct JobImportOptions {
  std::optional<NamedText> model;  ///< config.json to use instead of the described model
  std::optional<int> gpus;         ///< absent: from the launcher
};

struct ImportedJob {
  NamedText model;  ///< a HuggingFace config.json
  Strategy strategy;
  std::vector<int> blocks_per_stage;  ///< empty: by `cut`
  StageCut cut;
  std::string trainer;             ///< profile: "megatron-core"
  std::vector<std::string> notes;  ///< assumptions
  /// Options that change time or memory and are not modeled, and those that change neither.
  std::vector<std::string> not_modeled, ignored;
};

/// A shell script with pretrain_gpt.py, or a list of its options. InputError for missing options
/// and invalid values, with file:line.
ImportedJob import_megatron(const NamedText& script, const JobImportOptions& options);
/// TOML of torchtitan up to v0.2.2.
ImportedJob import_torchtitan(const NamedText& toml, const JobImportOptions& options);

}  // namespace meshwright
