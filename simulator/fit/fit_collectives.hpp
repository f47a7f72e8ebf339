/// Parameters of measured collectives from measurements.
///
/// Bounded least squares (Ceres) of ln(predicted / measured). Large errors count less (SoftL1 with
/// a scale of 10 %), since measurements of one collective on two machines differ by more than
/// noise, and every parameter is held weakly to where it starts, so that one without measurements
/// keeps that value.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/cluster/cluster.hpp"

namespace meshwright {

struct MeasuredCollective {
  Collective collective;
  Seconds time;
  std::size_t cluster = 0;  ///< index of the cluster that it was measured on
  double weight = 1.0;      ///< of its error
};

/// Parameters that are fitted; the others stay as each cluster has them.
struct CollectiveFitScope {
  bool device = true;   ///< DeviceModel::collectives
  bool network = true;  ///< Fabric::collectives
};

struct CollectiveFit {
  CollectiveParameters device;  ///< of the first cluster if it is not fitted
  NetworkParameters network;    ///< likewise
  std::vector<double> errors;   ///< predicted / measured - 1, one per row
  bool converged = false;
};

/// Parameters to start from if a device has none: no corrections, typical bases.
CollectiveParameters plain_collective_parameters();

/// One set of parameters for all clusters, which differ in the number of devices, ports and the
/// like. Every cluster has one node type with a compute capability. Fits in about a second per 100
/// rows.
CollectiveFit fit_collectives(std::vector<Cluster> clusters,
                              std::span<const MeasuredCollective> rows,
                              const CollectiveFitScope& scope);

/// Predicted / measured - 1 of every row.
std::vector<double> collective_errors(std::span<const Cluster> clusters,
                                      std::span<const MeasuredCollective> rows);

}  // namespace meshwright
