/// The cluster `this-machine`: the cores, or the GPUs, that `calibrate` measured.
#pragma once

#include <string>

#include "core/calibration.hpp"
#include "core/cluster.hpp"
#include "models/load.hpp"

namespace meshwright {

inline constexpr std::string_view kThisMachine = "this-machine";
/// Ranks that may share the cores: by the virtual clock each has one of its own.
inline constexpr int kMostRanksOfThisMachine = 16;

/// Where this user's calibration lies: $MESHWRIGHT_CALIBRATION, else
/// $XDG_DATA_HOME/meshwright/this-machine.calib.json, else the same in $HOME/.local/share.
/// RuntimeFailure where none of these is set.
std::string this_machine_path();

/// The calibration found there. RuntimeFailure if there is none: `meshwright calibrate` writes it.
Calibration this_machine_calibration();

/// A node with a device for each core or GPU and for 16 ranks at least, memory shared by the cores
/// alone, messages as measured. What its formulas say is for kernels that were not measured.
Cluster cluster_of(const Calibration& calibration);
/// The same as a file, which plans embed.
NamedText this_machine_cluster(const Calibration& calibration);

}  // namespace meshwright
