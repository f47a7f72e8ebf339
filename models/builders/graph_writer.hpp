/// Operators from which blocks are built. Each adds its parameters, its output and the activations
/// that it saves for the backward pass. Parameters are counted along the way, so that a
/// configuration with plausible sizes but an absurd product is rejected before anything overflows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_graph.hpp"
#include "models/builders/transformer_config.hpp"

namespace meshwright {

struct LinearSpec {
  std::string name;
  std::int64_t in = 0, out = 0;
  bool bias = false;
  LinearCut cut = LinearCut::kReplicated;
  /// Widths of the outputs if one GEMM computes several projections; their sum is `out`.
  std::vector<std::int64_t> output_widths = {};
  bool into_residual = false;  ///< projects into the residual stream
};

class GraphWriter {
 public:
  /// `where` is the location in the error about too many parameters.
  GraphWriter(std::string name, std::string family, std::string where);

  /// Following names start with `prefix`: "layer7.".
  void begin_layer(LayerKind kind, std::string prefix);
  void end_layer(std::int64_t output_width);
  ModelGraph finish(std::int64_t longest_sequence, bool tied_embeddings);

  TensorId activation(std::string_view name, ActivationTensor shape);
  /// InputError if the model has 2^62 parameters or more.
  TensorId parameter(std::string_view name, ParameterTensor shape);
  void add(std::string_view name, Operator op);

  /// An embedding lookup; a tied head uses the table, too.
  struct Lookup {
    TensorId output, table;
  };
  Lookup lookup(std::string_view name, EmbeddingLookup shape, ParameterCut cut);
  TensorId norm(std::string_view name, TensorId input, const NormShape& shape, std::int64_t width);
  /// RMS norm of queries or keys: of every head, with the same weights, or (0) of all together.
  TensorId head_norm(std::string_view name, TensorId input, const NormShape& shape,
                     std::int64_t width, std::int64_t head_size);
  /// factor * input; the input if the factor is 1.
  TensorId scale(std::string_view name, TensorId input, double factor, std::int64_t width);
  std::vector<TensorId> linears(const LinearSpec& spec, TensorId input);
  TensorId linear(const LinearSpec& spec, TensorId input);
  TensorId residual(std::string_view name, TensorId left, TensorId right, std::int64_t width,
                    double dropout);
  /// Cross entropy of logits, whose softcap is 0 for none.
  void loss(TensorId logits, std::int64_t vocabulary, double softcap = 0);
  /// Standard deviations of initial weights: of matrices, and of projections into the residual
  /// stream.
  void set_initial_deviations(double matrices, double into_residual);

 private:
  std::string where_;
  std::string prefix_;
  std::int64_t parameter_count_ = 0;
  double deviation_ = 0.02, residual_deviation_ = 0.02;
  ModelGraphBuilder builder_;
};

}  // namespace meshwright
