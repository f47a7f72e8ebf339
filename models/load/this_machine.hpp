/// The cluster `this-machine`: the cores or GPUs measured by `calibrate`.
#pragma once

#include <string>

#include "core/cluster/cluster.hpp"
#include "core/cost/calibration.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

inline constexpr std::string_view kThisMachine = "this-machine";
/// Maximum number of ranks on the cores. With the virtual clock every rank has a core of its own.
inline constexpr int kMostRanksOfThisMachine = 16;

/// Path of this user's calibration: $MESHWRIGHT_CALIBRATION, else
/// $XDG_DATA_HOME/meshwright/this-machine.calib.json, else the same in $HOME/.local/share.
/// RuntimeFailure if none of these is set.
std::string this_machine_path();

/// Reads that calibration. RuntimeFailure if it does not exist: `meshwright calibrate` writes it.
Calibration this_machine_calibration();

/// One node with a device per core or GPU, at least 16. Cores share the memory; message times are
/// measured. The device figures price only kernels that are not in the calibration.
Cluster cluster_of(const Calibration& calibration);
/// The same as a cluster file, for embedding in plan files.
NamedText this_machine_cluster(const Calibration& calibration);

}  // namespace meshwright
