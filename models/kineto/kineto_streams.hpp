/// Memory-bound kernels of a Kineto trace by routine and size: several operators that one Kernel of
/// core/operators/operators.hpp stands for, and kernels without a routine, are added up.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "models/kineto/kineto_kernels.hpp"

namespace meshwright {

struct KinetoStream {
  double seconds = 0;        ///< all calls
  std::int64_t counted = 0;  ///< number of Kernels that the calls stand for
  std::int64_t recomputed = 0, kernels = 0;
  std::vector<double> times;  ///< of single operators, for the spread
};
using KinetoStreamKey = std::tuple<Routine, KinetoPass, std::int64_t>;  ///< and elements
struct KinetoStreams {
  std::map<KinetoStreamKey, KinetoStream> streams;
  /// By pass: kernels that cannot be attributed, since layers or hidden states were not recognized.
  std::map<KinetoPass, KinetoStream> unattributed;
};

/// Number of passes through a layer; forward includes recomputation.
struct KinetoLayers {
  std::int64_t forward = 0, backward = 0;
};
/// Every layer has one attention: fused, or a softmax over the scores. Zero: not recognized.
KinetoLayers count_layers(const KinetoKernels& kernels);

/// Elementwise kernels over the activations of a routine belong to it: the product of SwiGLU, the
/// mask of the scores, the conversion of logits. On tensors [.., .., .., head size] they are rotary
/// embeddings, one per layer. All others are counted with the residual additions, one or two per
/// layer. A backward pass without an operator of its own occurs as often as the forward pass.
KinetoStreams add_up_streams(const KinetoKernels& kernels);

}  // namespace meshwright
