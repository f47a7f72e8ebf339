/// A chain of operators with measured costs for every micro-batch size and tensor-parallel degree,
/// to be cut into pipeline stages in which every operator has its own strategy (Liu et al.,
/// "Aceso", EuroSys 2024).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/collective_kinds.hpp"
#include "core/base/units.hpp"

namespace meshwright {

/// The layout of a tensor over the devices of a stage with tensor-parallel degree t and
/// data-parallel degree d.
enum class ChainLayout : std::uint8_t {
  kAny,          ///< no layout: never converted
  kReplicated,   ///< t copies of 1/d, split along the second dimension
  kBatchFirst,   ///< t copies of 1/d, split along the first dimension
  kSplitHidden,  ///< split along the second (d) and the last dimension (t)
  kSplitHeads,   ///< split along the first (d) and the second dimension (t)
};

/// Measured on one device.
struct ChainCosts {
  bool is_measured = false;
  Seconds forward = {}, backward = {};  ///< with the collectives of tensor parallelism
  Bytes input = {}, output = {};  ///< of one micro-batch, with skip connections to later operators
  Bytes parameters = {}, activations = {};
  Bytes forward_workspace = {}, backward_workspace = {};
  friend bool operator==(const ChainCosts&, const ChainCosts&) = default;
};

inline constexpr int kChainAlgorithms = 2;  ///< a matrix split by columns or by rows

struct ChainOperator {
  std::string name;
  int algorithms = 1;
  bool can_be_recomputed = true;
  bool begins_layer = false;    ///< its input is a checkpoint of recomputed layers
  double activation_share = 1;  ///< share of its activations that takes memory
  std::array<ChainLayout, kChainAlgorithms> input{}, output{};
  std::vector<ChainCosts> costs = {};  ///< see ChainProblem::costs()
  friend bool operator==(const ChainOperator&, const ChainOperator&) = default;
};

/// Measured times by number of megabytes.
using CollectiveTimes = std::map<std::int64_t, Seconds>;

struct ChainProblem {
  std::vector<ChainOperator> operators = {};  ///< different ones
  std::vector<std::int32_t> chain = {};       ///< of the model, in order
  std::vector<int> microbatches = {};         ///< measured sizes, ascending
  int tensor_degrees = 1;                     ///< measured: 1, 2, 4, …
  /// By kind of collective, then by number of devices.
  std::map<CollectiveKind, std::map<int, CollectiveTimes>> collectives = {};
  /// Point to point, for messages of 1, 2, 4, … MB.
  std::vector<BytesPerSecond> rates_in_node = {}, rates_between_nodes = {};
  double state_share = 1;  ///< parameters, gradients and optimizer state per byte of parameters

  int devices_per_node = 1, nodes = 1;
  Bytes device_memory = {};
  int global_batch = 1;

  int devices() const { return devices_per_node * nodes; }
  /// Of ChainOperator::costs. `microbatch`: index of `microbatches`.
  std::size_t cost_index(std::size_t microbatch, int log_tensor, int algorithm) const {
    return (microbatch * static_cast<std::size_t>(tensor_degrees) +
            static_cast<std::size_t>(log_tensor)) *
               kChainAlgorithms +
           static_cast<std::size_t>(algorithm);
  }
  const ChainCosts& costs(const ChainOperator& op, std::size_t microbatch, int log_tensor,
                          int algorithm) const {
    return op.costs[cost_index(microbatch, log_tensor, algorithm)];
  }
  friend bool operator==(const ChainProblem&, const ChainProblem&) = default;
};

/// Limits of problems read from files and flags.
inline constexpr std::size_t kMostChainOperators = 4096;
inline constexpr int kMostChainDevices = 256;
inline constexpr int kMostChainTensorDegrees = 4;  ///< 1, 2, 4, 8
inline constexpr std::size_t kMostChainMicrobatches = 16;

/// Of one operator.
struct ChainStrategy {
  int tensor = 1, data = 1;  ///< degrees; their product is the same in a stage
  int algorithm = 0;
  bool is_recomputed = false;
  friend bool operator==(const ChainStrategy&, const ChainStrategy&) = default;
};

struct ChainStage {
  std::size_t begin = 0, end = 0;  ///< of the chain
  int devices = 1;
  Seconds time = {};  ///< per micro-batch, forward and backward, with its transfers
  Bytes memory = {};  ///< per device
  friend bool operator==(const ChainStage&, const ChainStage&) = default;
};

struct ChainPlan {
  int microbatch = 1;  ///< of the pipeline; an operator with data degree d computes 1/d of it
  std::vector<ChainStrategy> strategies = {};  ///< of every operator of the chain
  std::vector<ChainStage> stages = {};
  Seconds time = {};  ///< of a training step
  friend bool operator==(const ChainPlan&, const ChainPlan&) = default;
};

/// Time to convert a tensor of `size` between the layouts of neighbors, forward and backward:
/// nothing if they are equal; infinite if no measured collective does it. Sizes that were not
/// measured are looked up one megabyte lower, as Aceso does.
Seconds conversion_time(const ChainProblem& problem, ChainLayout from, const ChainStrategy& source,
                        ChainLayout to, const ChainStrategy& target, Bytes size);

/// Time of a message of `size` bytes. Messages have the rate of half the next lower power of two
/// of megabytes, as Aceso looks it up.
Seconds transfer_time(const std::vector<BytesPerSecond>& rates, Bytes size);

/// Sets times and memory of all stages from their definition; infinite where something was not
/// measured. A plan of p stages with times t_s, and N micro-batches per step, takes
///
///   (N - 1) max t_s + sum t_s
///
/// The time of a stage is the sum of the forward and backward times of its operators, the forward
/// times of recomputed operators, layout conversions, and the transfers of its input and output.
/// Transfers between nodes, and that at the end of the chain, have the rate between nodes. With b
/// stages behind it, a stage needs
///
///   c W + (b + 1) (I + A - S) + R + max(F + B, W)
///
/// bytes for parameters W, the state_share c, the input I, activations A, of which S are recomputed
/// (those of a recomputed operator before another one in the same layer), the largest sum R of
/// consecutive ones, and the largest forward and backward workspaces F and B of all operators but
/// the last. (Aceso, section 4.3, and its program at commit a692fa66, which takes the output of the
/// last operator for the tensor degree of the first one.)
void price_chain(const ChainProblem& problem, ChainPlan& plan);

/// Throws InputError for chains without operators, or without times.
void check_chain_problem(const ChainProblem& problem, const std::string& where);

}  // namespace meshwright
