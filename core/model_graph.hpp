/// A model as a graph of operators over tensors, with no word about cost or placement.
///
/// Shapes are per token: an activation `[B, T, width]` is stored as its width; B (sequences in a
/// micro-batch) and T (sequence length) come from the plan. Legend for comments:
///   B sequences  T sequence length  H hidden  A heads  G key/value heads  D head size  F
///   feed-forward V vocabulary  E experts  K experts per token
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.hpp"

namespace meshwright {

// ---- tensors --------------------------------------------------------------------------------

/// How tensor parallelism may cut an activation.
enum class ActivationCut : std::uint8_t {
  kTokens,   ///< whole on every tensor rank; under sequence parallelism its tokens are cut instead
  kFeatures  ///< features (heads, feed-forward columns, vocabulary) are cut over the tensor ranks
};
enum class ElementWidth : std::uint8_t {
  kCompute,  ///< the compute dtype of the plan: 2 bytes for bf16
  kMask,     ///< 1 byte: dropout masks
  kFloat32   ///< 4 bytes: softmax statistics, loss
};

struct ActivationTensor {
  std::int64_t width = 0;  ///< elements per token
  bool per_key = false;    ///< times the key positions seen: attention scores [B, A, T, T]
  bool routed = false;     ///< one row per (token, chosen expert): K rows a token
  ActivationCut cut = ActivationCut::kTokens;
  ElementWidth element = ElementWidth::kCompute;
  // What ModelGraphBuilder::finish() fills in.
  int rows_per_token = 1;  ///< K where routed
  int experts = 0;         ///< E where routed
  int heads = 0;           ///< keys and values: G whole heads, of which ranks beyond G
                           ///< hold copies
  friend bool operator==(const ActivationTensor&, const ActivationTensor&) = default;
};

/// How a parameter may be cut.
enum class ParameterCut : std::uint8_t {
  kReplicated,  ///< norms, biases after a row cut, routers, position embeddings
  kTensor,      ///< over the tensor ranks
  kExpert       ///< experts over the expert ranks, each over the expert-tensor ranks
};

struct ParameterTensor {
  std::vector<std::int64_t> shape;
  ParameterCut cut = ParameterCut::kReplicated;
  bool trained_by_gradient = true;  ///< false: router bias corrections, updated by a rule
  friend bool operator==(const ParameterTensor&, const ParameterTensor&) = default;
};

struct Tensor {
  std::string name;
  std::variant<ActivationTensor, ParameterTensor> shape;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// ---- operators ------------------------------------------------------------------------------

struct EmbeddingLookup {  ///< rows of a [V, H] table; positions and token types too
  std::int64_t rows = 0, width = 0;
  friend bool operator==(const EmbeddingLookup&, const EmbeddingLookup&) = default;
};
enum class NormKind : std::uint8_t { kLayerNorm, kRmsNorm };
struct Norm {
  NormKind kind = NormKind::kLayerNorm;
  std::int64_t width = 0;  ///< normalised elements per token; heads * D for query/key norms
  friend bool operator==(const Norm&, const Norm&) = default;
};
enum class LinearCut : std::uint8_t {
  kReplicated,  ///< every tensor rank does all of it
  kColumn,      ///< outputs are cut; backward sums the input gradient over the tensor ranks
  kRow          ///< inputs are cut; forward sums the output over the tensor ranks
};
struct Linear {  ///< y = x W + b, W [in, out]
  std::int64_t in = 0, out = 0;
  bool bias = false;
  LinearCut cut = LinearCut::kReplicated;
  friend bool operator==(const Linear&, const Linear&) = default;
};
struct RotaryEmbedding {
  std::int64_t width = 0;  ///< rotated elements per token (queries and keys)
  friend bool operator==(const RotaryEmbedding&, const RotaryEmbedding&) = default;
};
struct Attention {  ///< softmax(Q K^T) V, without its projections
  std::int64_t heads = 0, key_value_heads = 0;
  std::int64_t key_size = 0, value_size = 0;  ///< D of queries and keys, D of values
  bool causal = true;
  std::optional<std::int64_t> window;  ///< keys seen by a query, if limited
  double dropout = 0;                  ///< probability that a probability is dropped
  friend bool operator==(const Attention&, const Attention&) = default;
};
enum class ActivationKind : std::uint8_t { kGelu, kRelu, kSwiGlu };  ///< SwiGLU reads 2 widths
struct Activation {
  ActivationKind kind = ActivationKind::kGelu;
  std::int64_t width = 0;  ///< output elements per token
  bool routed = false;     ///< inside the experts: K rows a token
  friend bool operator==(const Activation&, const Activation&) = default;
};
struct ResidualAdd {
  std::int64_t width = 0;
  /// Probability that an element is dropped: of the second input in blocks, of the sum in the
  /// embedding layer.
  double dropout = 0;
  friend bool operator==(const ResidualAdd&, const ResidualAdd&) = default;
};
struct RowGate {  ///< y = sigmoid(g) x with one g a token: inputs x [B, T, width] and g [B, T, 1]
  std::int64_t width = 0;
  friend bool operator==(const RowGate&, const RowGate&) = default;
};
struct Router {  ///< token → scores over E experts → top K
  std::int64_t hidden = 0;
  int experts = 0, experts_per_token = 0;
  friend bool operator==(const Router&, const Router&) = default;
};
struct TokenDispatch {  ///< tokens go to the ranks of their experts: all-to-all over expert ranks
  std::int64_t width = 0;
  int experts_per_token = 0;
  friend bool operator==(const TokenDispatch&, const TokenDispatch&) = default;
};
struct TokenCombine {  ///< expert outputs come home and are summed by weight
  std::int64_t width = 0;
  int experts_per_token = 0;
  friend bool operator==(const TokenCombine&, const TokenCombine&) = default;
};
struct ExpertLinear {  ///< one Linear per expert on the rows routed to it (grouped GEMM)
  int experts = 0, experts_per_token = 0;
  std::int64_t in = 0, out = 0;
  bool bias = false;
  LinearCut cut = LinearCut::kColumn;  ///< how expert-tensor ranks cut each expert
  friend bool operator==(const ExpertLinear&, const ExpertLinear&) = default;
};
struct CrossEntropy {
  std::int64_t vocabulary = 0;
  friend bool operator==(const CrossEntropy&, const CrossEntropy&) = default;
};

using OperatorShape =
    std::variant<EmbeddingLookup, Norm, Linear, RotaryEmbedding, Attention, Activation, ResidualAdd,
                 RowGate, Router, TokenDispatch, TokenCombine, ExpertLinear, CrossEntropy>;

struct Operator {
  std::string name;  ///< "layer7.attention.query"
  OperatorShape shape;
  std::vector<TensorId> inputs;   ///< activations read
  std::vector<TensorId> outputs;  ///< activations written
  std::vector<TensorId> parameters;
  /// Activations kept from forward to backward, as Korthikanti et al. count them
  /// (arXiv 2205.05198, section 4.1). A tensor kept by two operators of a layer is kept once.
  std::vector<TensorId> kept;
  friend bool operator==(const Operator&, const Operator&) = default;
};

// ---- layers and the model -------------------------------------------------------------------

enum class LayerKind : std::uint8_t { kEmbedding, kBlock, kHead };

/// A run of operators that pipeline stages never cut. Embedding first, head last, blocks between.
struct Layer {
  LayerKind kind = LayerKind::kBlock;
  std::int32_t first_operator = 0, operator_count = 0;  ///< consecutive in ModelGraph::operators
  /// Layers of one class have equal operators (names aside); cost is worked out once per class.
  std::int32_t layer_class = 0;
  std::int64_t output_width = 0;  ///< elements per token handed to the next layer; 0 after the head
  friend bool operator==(const Layer&, const Layer&) = default;
};

struct ModelGraph {
  std::string name;    ///< preset name, or the file's
  std::string family;  ///< "llama", "gpt2", …: HuggingFace model_type
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;  ///< in a topological order
  std::vector<Layer> layers;
  std::int64_t longest_sequence = 0;  ///< positions the model was made for (0: no limit)
  bool tied_embeddings = false;       ///< the head reads the embedding table
  friend bool operator==(const ModelGraph&, const ModelGraph&) = default;
};

/// Blocks (layers between embedding and head).
int block_count(const ModelGraph& model);
/// Layer ids of one class share this count; index = layer_class.
int layer_class_count(const ModelGraph& model);

/// Exact number of parameters; a tensor used twice counts once.
std::int64_t parameter_count(const ModelGraph& model);
/// Parameters of one layer; a table that another layer owns is not counted again in the head.
std::int64_t parameter_count(const ModelGraph& model, LayerId layer);
/// Parameters that act on one token: E experts count as K (plus shared ones).
std::int64_t active_parameter_count(const ModelGraph& model);

/// Common traits that plans are checked against; absent when the model has no such operator.
struct ModelTraits {
  int blocks = 0;
  std::int64_t hidden = 0, vocabulary = 0;
  std::optional<int> heads, key_value_heads;  ///< smallest over all attention operators
  std::optional<int> experts, experts_per_token;
  friend bool operator==(const ModelTraits&, const ModelTraits&) = default;
};
ModelTraits traits_of(const ModelGraph& model);

/// Builds a graph and proves it sound: finish() checks with Boost.Graph that it is acyclic, that
/// operators stand in topological order, ids are in range, shapes agree along every edge, layers
/// cover all operators; then numbers the layer classes. A broken graph is a bug of the builder
/// (MW_CHECK); user input is checked before.
class ModelGraphBuilder {
 public:
  ModelGraphBuilder(std::string name, std::string family);
  TensorId add_activation(std::string name, ActivationTensor shape);
  TensorId add_parameter(std::string name, ParameterTensor shape);
  void begin_layer(LayerKind kind);
  OperatorId add(Operator op);
  void end_layer(std::int64_t output_width);
  ModelGraph finish(std::int64_t longest_sequence, bool tied_embeddings);

 private:
  ModelGraph graph_;
  bool layer_is_open_ = false;
};

}  // namespace meshwright
