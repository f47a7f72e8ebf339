/// A model as a graph of operators over tensors, independent of cost and placement.
///
/// Shapes are per token: an activation `[B, T, width]` is stored as its width; B (sequences in a
/// micro-batch) and T (sequence length) come from the plan. Legend for comments:
///   B sequences  T sequence length  H hidden  A heads  G key/value heads  D head size  F
///   feed-forward V vocabulary  E experts  K experts per token
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/base/ids.hpp"

namespace meshwright {

// ---- tensors --------------------------------------------------------------------------------

/// How an activation is sharded under tensor parallelism.
enum class ActivationCut : std::uint8_t {
  kTokens,   ///< replicated; under sequence parallelism its tokens are sharded over tensor ranks
  kFeatures  ///< features (heads, feed-forward columns, vocabulary) sharded over tensor ranks
};
enum class ElementWidth : std::uint8_t {
  kCompute,  ///< the compute dtype of the plan: 2 bytes for bf16
  kMask,     ///< 1 byte: dropout masks
  kFloat32   ///< 4 bytes: softmax statistics, loss
};

struct ActivationTensor {
  std::int64_t width = 0;  ///< elements per token
  bool per_key = false;    ///< multiplied by the visible keys: attention scores [B, A, T, T]
  bool routed = false;     ///< one row per (token, chosen expert): K rows per token
  ActivationCut cut = ActivationCut::kTokens;
  ElementWidth element = ElementWidth::kCompute;
  // Filled in by ModelGraphBuilder::finish().
  int rows_per_token = 1;  ///< K if routed
  int experts = 0;         ///< E if routed
  int heads = 0;           ///< keys and values: G heads; with more than G ranks they are replicated
  friend bool operator==(const ActivationTensor&, const ActivationTensor&) = default;
};

/// How a parameter is sharded.
enum class ParameterCut : std::uint8_t {
  kReplicated,  ///< norms, biases of row-parallel layers, routers, position embeddings
  kTensor,      ///< over the tensor ranks
  kExpert       ///< experts over the expert ranks, each over the expert-tensor ranks
};

struct ParameterTensor {
  std::vector<std::int64_t> shape;
  ParameterCut cut = ParameterCut::kReplicated;
  bool trained_by_gradient = true;  ///< false: router bias corrections, updated by a rule
  double initial_deviation = 0.02;  ///< of matrices, whose initial values are normal
  double initial_value = 1;         ///< of the weights of norms
  friend bool operator==(const ParameterTensor&, const ParameterTensor&) = default;
};

struct Tensor {
  std::string name;
  std::variant<ActivationTensor, ParameterTensor> shape;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// ---- operators ------------------------------------------------------------------------------

/// Elements per token in compute precision that an operator reads and writes, and elements of its
/// first parameter, as required by its shape; empty: any.
struct OperatorWidths {
  std::optional<std::int64_t> in, out, first_parameter;
};

struct EmbeddingLookup {  ///< rows of a [V, H] table; positions and token types too
  std::int64_t rows = 0, width = 0;
  std::int64_t first_row = 0;  ///< of index 0 (positions of OPT: 2)
  /// The index of padding, if there is one: its row starts from zero and gets no gradient.
  std::optional<std::int64_t> padding = {};
  friend bool operator==(const EmbeddingLookup&, const EmbeddingLookup&) = default;
};
constexpr OperatorWidths widths_of(const EmbeddingLookup& s) {
  return {.in = {}, .out = s.width, .first_parameter = s.rows * s.width};
}
enum class NormKind : std::uint8_t { kLayerNorm, kRmsNorm };
struct Norm {
  NormKind kind = NormKind::kLayerNorm;
  std::int64_t width = 0;      ///< normalized elements per token; heads * D for query/key norms
  double epsilon = 1e-5;       ///< added to the variance or the mean of squares
  double weight_offset = 0;    ///< the factor of an element is weight + weight_offset (Gemma: 1)
  std::int64_t head_size = 0;  ///< D: every head is normalized separately; 0: all elements together
  friend bool operator==(const Norm&, const Norm&) = default;
};
constexpr OperatorWidths widths_of(const Norm& s) {
  return {.in = s.width, .out = s.width, .first_parameter = {}};
}
enum class LinearCut : std::uint8_t {
  kReplicated,  ///< computed in full on every tensor rank
  kColumn,      ///< column-parallel: backward sums the input gradient over the tensor ranks
  kRow          ///< row-parallel: forward sums the output over the tensor ranks
};
struct Linear {  ///< y = x W + b, W [in, out]
  std::int64_t in = 0, out = 0;
  bool bias = false;
  LinearCut cut = LinearCut::kReplicated;
  friend bool operator==(const Linear&, const Linear&) = default;
};
constexpr OperatorWidths widths_of(const Linear& s) {
  return {.in = s.in, .out = s.out, .first_parameter = s.in * s.out};
}
enum class RotaryPairs : std::uint8_t {
  kHalves,    ///< element i with i + R/2 (Llama in HuggingFace, GPT-NeoX)
  kNeighbors  ///< element 2i with 2i + 1 (arXiv 2104.09864, DeepSeek)
};
/// How fast the R rotated elements of a head turn: pair i by base^(-2i / R) / divisors[i] radians
/// per position. Methods of context extension differ in divisors and magnitude.
struct RotaryAngles {
  double base = 10'000;               ///< theta (arXiv 2104.09864, section 3.2.2)
  std::vector<double> divisors;       ///< R / 2; empty: 1
  std::vector<double> long_divisors;  ///< of sequences longer than long_from (LongRoPE)
  std::int64_t long_from = 0;
  double magnitude = 1;  ///< factor of all rotated elements (YaRN, arXiv 2309.00071, section 3.4)
  friend bool operator==(const RotaryAngles&, const RotaryAngles&) = default;
};
/// Multiplies queries at position p by 1 + growth log(1 + floor((p + 1) / interval)): Llama 4,
/// after scalable softmax (arXiv 2501.19399).
struct QueryTemperature {
  double growth = 0;
  std::int64_t interval = 1;  ///< positions
  friend bool operator==(const QueryTemperature&, const QueryTemperature&) = default;
};
struct RotaryEmbedding {
  std::int64_t width = 0;  ///< elements per token read and written (queries and keys)
  /// Rotated elements of each head, the first ones; 0: all of them. The others are copied.
  std::int64_t rotated_per_head = 0;
  RotaryPairs pairs = RotaryPairs::kHalves;
  RotaryAngles angles = {};
  std::optional<QueryTemperature> temperature = {};  ///< instead of a rotation, of queries only
  friend bool operator==(const RotaryEmbedding&, const RotaryEmbedding&) = default;
};
constexpr OperatorWidths widths_of(const RotaryEmbedding&) { return {}; }
struct Attention {  ///< softmax(Q K^T) V, without its projections
  std::int64_t heads = 0, key_value_heads = 0;
  std::int64_t key_size = 0, value_size = 0;  ///< D of queries and keys, D of values
  bool causal = true;
  std::optional<std::int64_t> window;  ///< keys seen by a query, if limited
  /// Positions are divided into chunks of this many, and a query sees keys of its own only (Llama
  /// 4).
  std::optional<std::int64_t> chunk = {};
  double dropout = 0;                ///< dropout probability of the attention weights
  std::optional<double> scale = {};  ///< of the scores; absent: 1 / sqrt(key_size)
  double softcap = 0;                ///< scores become softcap tanh(score / softcap); 0: none
  friend bool operator==(const Attention&, const Attention&) = default;
};
constexpr OperatorWidths widths_of(const Attention& s) {
  return {.in = {}, .out = s.heads * s.value_size, .first_parameter = {}};
}
enum class ActivationKind : std::uint8_t {
  kGeluTanh,
  kGeluErf,
  kRelu,
  kSquaredRelu,  ///< max(x, 0)^2 (Primer, arXiv 2109.08668)
  // Gated: f(gate) up, reading 2 widths (arXiv 2002.05202).
  kSwiGlu,
  kGegluTanh,
  kGegluErf,
  kReglu,
  kClampedSwiGlu  ///< gate sigmoid(1.702 gate) (up + 1) of clamped inputs (gpt-oss)
};
constexpr bool is_gated(ActivationKind kind) { return kind >= ActivationKind::kSwiGlu; }
struct Activation {
  ActivationKind kind = ActivationKind::kGeluTanh;
  std::int64_t width = 0;  ///< output elements per token
  bool routed = false;     ///< inside the experts: K rows per token
  double limit = 0;        ///< kClampedSwiGlu: gate <= limit, -limit <= up <= limit
  friend bool operator==(const Activation&, const Activation&) = default;
};
constexpr OperatorWidths widths_of(const Activation& s) {
  const std::int64_t reads = is_gated(s.kind) ? 2 : 1;
  return {.in = reads * s.width, .out = s.width, .first_parameter = {}};
}
struct ResidualAdd {
  std::int64_t width = 0;
  /// Dropout probability: applied to the second input in blocks, to the sum in the embedding layer.
  double dropout = 0;
  friend bool operator==(const ResidualAdd&, const ResidualAdd&) = default;
};
constexpr OperatorWidths widths_of(const ResidualAdd& s) {
  return {.in = 2 * s.width, .out = s.width, .first_parameter = {}};
}
struct Scale {  ///< y = factor x
  std::int64_t width = 0;
  double factor = 1;
  friend bool operator==(const Scale&, const Scale&) = default;
};
constexpr OperatorWidths widths_of(const Scale& s) {
  return {.in = s.width, .out = s.width, .first_parameter = {}};
}
struct RowGate {  ///< y = sigmoid(g) x, one g per token: inputs x [B, T, width] and g [B, T, 1]
  std::int64_t width = 0;
  friend bool operator==(const RowGate&, const RowGate&) = default;
};
constexpr OperatorWidths widths_of(const RowGate& s) {
  return {.in = s.width + 1, .out = s.width, .first_parameter = {}};
}
enum class RouterScore : std::uint8_t {
  kSoftmax,  ///< over all experts
  kSigmoid   ///< of each expert (DeepSeek-V3, arXiv 2412.19437, section 2.1.2)
};
struct Router {  ///< token → scores over E experts → top K
  std::int64_t hidden = 0;
  int experts = 0, experts_per_token = 0;
  RouterScore score = RouterScore::kSoftmax;
  bool normalized = true;  ///< the weights of a token are divided by their sum
  double scale = 1;        ///< and multiplied by this
  /// Experts form equal groups; those of a token come from the groups whose largest scores have the
  /// largest sums.
  int groups = 1, chosen_groups = 1;
  int scores_per_group = 0;  ///< in that sum; 0: ceil(K / chosen_groups)
  friend bool operator==(const Router&, const Router&) = default;
};
constexpr OperatorWidths widths_of(const Router& s) {
  return {.in = s.hidden, .out = {}, .first_parameter = s.hidden * s.experts};
}
struct TokenDispatch {  ///< sends tokens to their experts: all-to-all over the expert ranks
  std::int64_t width = 0;
  int experts_per_token = 0;
  bool weighted = false;  ///< by router scores, instead of the outputs of the experts (Llama 4)
  friend bool operator==(const TokenDispatch&, const TokenDispatch&) = default;
};
constexpr OperatorWidths widths_of(const TokenDispatch&) { return {}; }
struct TokenCombine {  ///< returns expert outputs and sums them
  std::int64_t width = 0;
  int experts_per_token = 0;
  bool weighted = true;  ///< by router scores
  friend bool operator==(const TokenCombine&, const TokenCombine&) = default;
};
constexpr OperatorWidths widths_of(const TokenCombine& s) {
  return {.in = {}, .out = s.width, .first_parameter = {}};
}
struct ExpertLinear {  ///< one Linear per expert over the rows routed to it (grouped GEMM)
  int experts = 0, experts_per_token = 0;
  std::int64_t in = 0, out = 0;
  bool bias = false;
  LinearCut cut = LinearCut::kColumn;  ///< how each expert is sharded over expert-tensor ranks
  friend bool operator==(const ExpertLinear&, const ExpertLinear&) = default;
};
constexpr OperatorWidths widths_of(const ExpertLinear& s) {
  return {.in = s.in, .out = s.out, .first_parameter = s.experts * s.in * s.out};
}
struct CrossEntropy {
  std::int64_t vocabulary = 0;
  double softcap = 0;  ///< logits become softcap tanh(logit / softcap); 0: none
  friend bool operator==(const CrossEntropy&, const CrossEntropy&) = default;
};
constexpr OperatorWidths widths_of(const CrossEntropy& s) {
  return {.in = s.vocabulary, .out = {}, .first_parameter = {}};
}

/// The list of all operators, from which the variant of shapes and the declarations of their passes
/// come (core/operators/operators.hpp, executor/operators/operator_pass.hpp): W(shape) if the
/// weight gradients are a phase of their own, X(shape) otherwise. Order: that of OperatorShape.
// clang-format off
#define MESHWRIGHT_OPERATORS(X, W) \
  W(EmbeddingLookup)               \
  X(Norm)                          \
  W(Linear)                        \
  X(RotaryEmbedding)               \
  X(Attention)                     \
  X(Activation)                    \
  X(ResidualAdd)                   \
  X(Scale)                         \
  X(RowGate)                       \
  W(Router)                        \
  X(TokenDispatch)                 \
  X(TokenCombine)                  \
  W(ExpertLinear)                  \
  X(CrossEntropy)
// clang-format on

template <class, class... Shapes>
using VariantAfterFirst = std::variant<Shapes...>;
#define MESHWRIGHT_ALTERNATIVE(Shape) , Shape
using OperatorShape =
    VariantAfterFirst<void MESHWRIGHT_OPERATORS(MESHWRIGHT_ALTERNATIVE, MESHWRIGHT_ALTERNATIVE)>;
#undef MESHWRIGHT_ALTERNATIVE

struct Operator {
  std::string name = {};  ///< "layer7.attention.query"
  OperatorShape shape = {};
  std::vector<TensorId> inputs = {};   ///< activations read
  std::vector<TensorId> outputs = {};  ///< activations written
  std::vector<TensorId> parameters = {};
  /// Saved activations, counted as in Korthikanti et al. (arXiv 2205.05198, section 4.1). A tensor
  /// saved by two operators of a layer is stored once.
  std::vector<TensorId> kept = {};
  friend bool operator==(const Operator&, const Operator&) = default;
};

// ---- layers and the model -------------------------------------------------------------------

enum class LayerKind : std::uint8_t { kEmbedding, kBlock, kHead };

/// A run of operators that is never split across stages: embedding first, then blocks, then head.
struct Layer {
  LayerKind kind = LayerKind::kBlock;
  std::int32_t first_operator = 0, operator_count = 0;  ///< consecutive in ModelGraph::operators
  /// Layers of one class have identical operators except for names; costs are computed per class.
  std::int32_t layer_class = 0;
  std::int64_t output_width = 0;  ///< elements per token handed to the next layer; 0 after the head
  friend bool operator==(const Layer&, const Layer&) = default;
};

struct ModelGraph {
  std::string name;    ///< name of the preset or the file
  std::string family;  ///< "llama", "gpt2", …: HuggingFace model_type
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;  ///< in a topological order
  std::vector<Layer> layers;
  std::int64_t longest_sequence = 0;  ///< maximum number of positions (0: no limit)
  bool tied_embeddings = false;       ///< the head reads the embedding table
  friend bool operator==(const ModelGraph&, const ModelGraph&) = default;
};

// ---- access ----

inline const ActivationTensor& activation_of(const ModelGraph& model, TensorId id) {
  return std::get<ActivationTensor>(model.tensors[id.index()].shape);
}
inline const ParameterTensor& parameter_of(const ModelGraph& model, TensorId id) {
  return std::get<ParameterTensor>(model.tensors[id.index()].shape);
}
inline std::span<const Operator> operators_of(const ModelGraph& model, LayerId layer) {
  const Layer& l = model.layers[layer.index()];
  return {model.operators.data() + l.first_operator, static_cast<std::size_t>(l.operator_count)};
}

/// `op` must be one of the model's operators.
inline OperatorId id_of(const ModelGraph& model, const Operator& op) {
  return OperatorId(static_cast<std::int32_t>(&op - model.operators.data()));
}

// ---- counts and traits ----

/// Number of blocks (layers between embedding and head).
int block_count(const ModelGraph& model);
/// The place of a block among the blocks, from 0.
int block_index(const ModelGraph& model, LayerId block);
/// Number of layer classes; Layer::layer_class is less than this.
int layer_class_count(const ModelGraph& model);

/// Exact number of parameters; a tensor used twice counts once.
std::int64_t parameter_count(const ModelGraph& model);
/// Number of parameters of one layer; a tied table is not counted again in the head.
std::int64_t parameter_count(const ModelGraph& model, LayerId layer);
/// Number of parameters used per token: K of E experts count (plus shared ones).
std::int64_t active_parameter_count(const ModelGraph& model);

/// Properties that plans are checked against; empty if the model has no such operator.
struct ModelTraits {
  int blocks = 0;
  std::int64_t hidden = 0, vocabulary = 0;
  std::optional<int> heads, key_value_heads;  ///< smallest over all attention operators
  std::optional<int> experts, experts_per_token;
  friend bool operator==(const ModelTraits&, const ModelTraits&) = default;
};
ModelTraits traits_of(const ModelGraph& model);

/// Builds and validates a graph: finish() checks that it is acyclic (Boost.Graph), that operators
/// are in topological order, IDs are in range, shapes match along every edge, and layers cover all
/// operators; then it numbers the layer classes. An invalid graph is a bug of the caller
/// (MW_CHECK); user input must have been checked before.
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

/// True if the model has a token table and logits that can be sharded by vocabulary; the logits and
/// the loss are then the last two operators of the head.
bool has_vocabulary_layers(const ModelGraph& model);
inline constexpr int kOutputOperators = 2;  ///< logits and loss: the last ones of the head

}  // namespace meshwright
