/// Measured times of single collectives, as CSV: the second input of `meshwright fit`.
///
/// One header line, then one row per collective; unknown columns are ignored. Required:
///   op       all_reduce, all_gather, reduce_scatter, all_to_all (others are skipped)
///   ranks    devices of the group
///   bytes    as nccl-tests counts: all_gather received, reduce_scatter and all_to_all sent, per
///            rank, own part included
///   time_us
/// Optional: device; nodes, or topology, a text that begins with nodes x devices per node ("2x8
/// NVSwitch"), default 1; note, where "not NCCL" marks rows to skip.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulator/fit/fit_collectives.hpp"
#include "simulator/fit/fit_device.hpp"

namespace meshwright {

struct MeasuredCollectives {
  std::vector<MeasuredCollective> rows;  ///< all on cluster 0; messages below 1 MiB weigh less
  std::vector<std::string> notes;        ///< rows that were skipped, one line per reason
};

/// Rows of other devices than `device` are skipped (empty: none), and so are rows across nodes:
/// their parameters belong to a network. InputError names line and column.
MeasuredCollectives read_measured_collectives(std::string_view text, const std::string& file,
                                              const std::string& device);

struct DeviceCollectivesFit {
  CollectiveParameters parameters;
  std::vector<FamilyError> families;  ///< by operation; messages of at least 1 MiB
};

/// Parameters of the devices of `cluster`, which has one node type. `holdout`: fraction of the
/// shapes (operation and number of devices), chosen by their hash, whose errors are reported from a
/// second fit without them. Rows with more devices than a node are left out.
DeviceCollectivesFit fit_device_collectives(const Cluster& cluster,
                                            const std::vector<MeasuredCollective>& rows,
                                            double holdout);

}  // namespace meshwright
