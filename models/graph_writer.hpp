/// The operators that every block is written with: each adds its parameters, its output and what
/// it keeps for the backward pass. Counts parameters on the way, so that a configuration whose
/// sizes are each plausible but absurd together is refused before any product overflows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model_graph.hpp"

namespace meshwright {

struct LinearSpec {
  std::string name;
  std::int64_t in = 0, out = 0;
  bool bias = false;
  LinearCut cut = LinearCut::kReplicated;
  /// Widths of the outputs, if it is several projections in one GEMM; they add up to `out`.
  std::vector<std::int64_t> output_widths = {};
};

class GraphWriter {
 public:
  /// `where` is put before the complaint about too many parameters.
  GraphWriter(std::string name, std::string family, std::string where);

  /// Names that follow begin with `prefix`: "layer7.".
  void begin_layer(LayerKind kind, std::string prefix);
  void end_layer(std::int64_t output_width);
  ModelGraph finish(std::int64_t longest_sequence, bool tied_embeddings);

  TensorId activation(std::string_view name, ActivationTensor shape);
  /// InputError when the model passes 2^62 parameters.
  TensorId parameter(std::string_view name, ParameterTensor shape);
  void add(std::string_view name, Operator op);

  /// Rows of a table; the id of the table is handed out for a tied head.
  struct Lookup {
    TensorId output, table;
  };
  Lookup lookup(std::string_view name, std::int64_t rows, std::int64_t width, ParameterCut cut);
  TensorId norm(std::string_view name, TensorId input, NormKind kind, std::int64_t width);
  /// Norm of each head with one weight vector of `head_size` for all of them.
  TensorId head_norm(std::string_view name, TensorId input, std::int64_t heads,
                     std::int64_t head_size);
  std::vector<TensorId> linears(const LinearSpec& spec, TensorId input);
  TensorId linear(const LinearSpec& spec, TensorId input);
  TensorId residual(std::string_view name, TensorId left, TensorId right, std::int64_t width,
                    double dropout);

 private:
  std::string where_;
  std::string prefix_;
  std::int64_t parameter_count_ = 0;
  ModelGraphBuilder builder_;
};

}  // namespace meshwright
