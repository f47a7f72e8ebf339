/// Trainer profiles as TOML: models/trainers/*.toml.
///
///   schema = 1
///   name = "megatron-2021"
///   extends = "pytorch-2021"        # optional: values that are not given come from that profile
///   version = "Megatron-LM v2.2"
///   generation = "pytorch-2021"     # inherited; the profile whose costs are shared
///   [host]                          # per_kernel = "9 us", …: HostCosts
///   [overlap]                       # messages_per_layer = 12, …: OverlapCosts
///   [gradient_accumulation]         # fused = true: GradientAccumulation
///   [memory]                        # context = "600 MiB", …: TrainerMemory
///   [elementwise]                   # norms, activations, residuals, rotary embeddings, biases
///   forward = 1.4                   # RoutineCost
///   [routines.softmax]              # one routine, by name_of(Routine)
///   launch = "megatron"             # at the top: LaunchTarget whose flags the program takes
///   [abilities]                     # what it can run: TrainerAbilities; all if absent
///   schedules = ["1f1b"]            # by key_of(Ability), words of words_of(); replaces inherited
///   ones [abilities.with_pipeline]       # in addition, in plans with pipeline parallelism zero =
///   [0, 1]
///
/// Every figure takes a source, as in cluster files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/trainer/trainer.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

NamedText find_trainer(const std::string& name_or_path);
std::vector<std::string> trainer_preset_names();  ///< sorted

/// The profile used where none is named: "megatron-core", or "meshwright" on devices that run our
/// own kernels.
std::string_view default_trainer(const Cluster& cluster);

/// InputError with file:line:column. Profiles may extend one another up to a depth of 8.
Trainer trainer_from_toml(const NamedText& toml);
/// Self-contained: without `extends`, and without sources. trainer_from_toml() of the result equals
/// `trainer` in everything else.
std::string to_toml(const Trainer& trainer);

}  // namespace meshwright
