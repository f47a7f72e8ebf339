// Embedding lookups, norms, matrix products and element-wise operators.
#include <algorithm>
#include <optional>

#include "core/base/check.hpp"
#include "core/base/value_named.hpp"
#include "executor/operators/operator_pass.hpp"

namespace meshwright {
namespace {

bool is_cut_table(const OperatorPass& pass) {
  const TensorId table = pass.op().parameters.front();
  return std::get<ParameterTensor>(pass.rank.model.tensors[table.index()].shape).cut ==
         ParameterCut::kTensor;
}

/// Token IDs to look up: of the whole tensor group if the table is sharded, else of this rank's own
/// tokens.
std::span<const std::int32_t> looked_up(const OperatorPass& pass) {
  const std::string& name = pass.op().name;
  std::span<const std::int32_t> ids = pass.rows.words;
  if (name.ends_with("positions")) ids = pass.rows.positions;
  if (name.ends_with("token_types")) ids = pass.rows.token_types;
  if (is_cut_table(pass) || !pass.sharding.strategy.sequence_parallel) return ids;
  const Block& own = pass.sharding.own_rows;
  return ids.subspan(static_cast<std::size_t>(own.begin), static_cast<std::size_t>(own.size()));
}

/// The index whose row is the first one on this rank.
std::int64_t first_index(OperatorPass& pass, const EmbeddingLookup& lookup) {
  return pass.parameters.shard(pass.op().parameters.front()).held.front().front().begin -
         lookup.first_row;
}

}  // namespace

void forward(OperatorPass& pass, const EmbeddingLookup& lookup) {
  const std::span<const std::int32_t> ids = looked_up(pass);
  const Matrix y = pass.make_value(pass.output(), static_cast<std::int64_t>(ids.size()));
  pass.rank.run(pass.rank.kernels.embedding_forward,
                {.table = pass.parameters.weight(pass.op().parameters.front()),
                 .ids = ids,
                 .first_row = first_index(pass, lookup),
                 .y = y});
}

void backward_input(OperatorPass&, const EmbeddingLookup&) {}  // token IDs have no gradient

void backward_weight(OperatorPass& pass, const EmbeddingLookup& lookup) {
  const std::span<const std::int32_t> ids = looked_up(pass);
  std::vector<std::int32_t> trained;
  if (lookup.padding && std::ranges::count(ids, *lookup.padding) > 0) {
    constexpr std::int32_t kNoRow = -1;
    trained.assign(ids.begin(), ids.end());
    std::ranges::replace(trained, static_cast<std::int32_t>(*lookup.padding), kNoRow);
  }
  pass.rank.run(pass.rank.kernels.embedding_backward,
                {.dy = pass.whole_gradient(pass.output()),
                 .ids = trained.empty() ? ids : trained,
                 .first_row = first_index(pass, lookup),
                 .dtable = pass.parameters.gradient(pass.op().parameters.front())});
}

// ---- norms ----

namespace {

/// Statistics are not saved but recomputed from the saved input in the backward pass.
struct NormAtWork {
  std::int64_t groups = 1;  ///< heads, for query or key norms
  OwnedMatrix mean, inverse_deviation;
};

/// Empty for a norm without parameters.
ConstVector weight_of(OperatorPass& pass) {
  const std::vector<TensorId>& parameters = pass.op().parameters;
  return parameters.empty() ? Vector{} : flat(pass.parameters.weight(parameters[0]));
}

/// An empty `y` computes the statistics only.
NormAtWork normalize(OperatorPass& pass, const Norm& norm, const Matrix& y) {
  const Matrix x = pass.value(pass.input());
  const std::vector<TensorId>& parameters = pass.op().parameters;
  const ConstVector weight = weight_of(pass);
  NormAtWork work;
  work.groups = norm.head_size > 0 ? x.columns / norm.head_size : 1;
  const std::int64_t count = x.rows * work.groups;
  work.inverse_deviation = pass.rank.numbers(count);
  if (norm.kind == NormKind::kLayerNorm) work.mean = pass.rank.numbers(count);
  const ConstVector bias =
      parameters.size() > 1 ? flat(pass.parameters.weight(parameters[1])) : Vector{};
  pass.rank.run(pass.rank.kernels.norm_forward,
                {.kind = norm.kind,
                 .x = x,
                 .weight = weight,
                 .offset = static_cast<float>(norm.weight_offset),
                 .bias = bias,
                 .epsilon = static_cast<float>(norm.epsilon),
                 .groups = work.groups,
                 .y = y,
                 .mean = work.mean.floats(),
                 .inverse_deviation = work.inverse_deviation.floats()});
  return work;
}

}  // namespace

void forward(OperatorPass& pass, const Norm& norm) {
  const Matrix y = pass.make_value(pass.output(), pass.value(pass.input()).rows);
  normalize(pass, norm, y);
}

void backward_input(OperatorPass& pass, const Norm& norm) {
  const Matrix x = pass.value(pass.input()), dy = pass.gradient(pass.output());
  NormAtWork work = normalize(pass, norm, {});
  const std::vector<TensorId>& parameters = pass.op().parameters;
  pass.into_gradient(pass.input(), Form::kGradient, x, [&](const Matrix& dx, bool adds) {
    pass.rank.run(pass.rank.kernels.norm_backward_input,
                  {.kind = norm.kind,
                   .x = x,
                   .dy = dy,
                   .weight = weight_of(pass),
                   .offset = static_cast<float>(norm.weight_offset),
                   .mean = work.mean.floats(),
                   .inverse_deviation = work.inverse_deviation.floats(),
                   .groups = work.groups,
                   .dx = dx,
                   .accumulate = adds});
  });
  if (parameters.empty()) return;
  std::span<float> dbias;
  if (parameters.size() > 1) dbias = floats_of(pass.parameters.gradient(parameters[1]));
  pass.rank.run(pass.rank.kernels.norm_backward_weight,
                {.kind = norm.kind,
                 .x = x,
                 .dy = dy,
                 .mean = work.mean.floats(),
                 .inverse_deviation = work.inverse_deviation.floats(),
                 .groups = work.groups,
                 .dweight = floats_of(pass.parameters.gradient(parameters[0])),
                 .dbias = dbias});
}

// ---- linear layers ----

namespace {

/// One output of a linear layer and its columns of the matrix.
struct Projection {
  TensorId output;
  Matrix weight, weight_gradient;  ///< [in, out]; [out, in] for a tied table
  bool adds_gradient = true;       ///< else the weight gradient is written
  Vector bias, bias_gradient;      ///< empty: none
  // Gradients are empty unless requested.
  Matrix result = {};  ///< its output, or the gradient of it
};

Matrix widened(Matrix m, std::int64_t columns) {
  if (!m.empty()) m.columns = columns;
  return m;
}
Vector widened(Vector v, std::int64_t size) {
  if (!v.empty()) v.size = size;
  return v;
}

/// Makes neighbors one projection if their results lie side by side, as their weights do.
void join(std::vector<Projection>& projections) {
  std::vector<Projection> joined;
  for (const Projection& p : projections) {
    if (!joined.empty()) {
      Projection& last = joined.back();
      const std::int64_t columns = last.result.columns + p.result.columns;
      const auto* place = static_cast<const std::byte*>(last.result.data) +
                          last.result.columns * bytes_per_element(last.result.dtype);
      if (p.result.data == place && columns <= last.result.stride) {
        last.weight = widened(last.weight, columns);
        last.weight_gradient = widened(last.weight_gradient, columns);
        last.bias = widened(last.bias, columns);
        last.bias_gradient = widened(last.bias_gradient, columns);
        last.result.columns = columns;
        continue;
      }
    }
    joined.push_back(p);
  }
  projections = std::move(joined);
}

bool reads_table(const OperatorPass& pass) {
  const TensorId weight = pass.op().parameters.front();
  const std::vector<Operator>& all = pass.rank.model.operators;
  return std::any_of(all.begin(), all.end(), [&](const Operator& o) {
    return std::holds_alternative<EmbeddingLookup>(o.shape) && o.parameters.front() == weight;
  });
}

/// Gradients only on request, since accessing sharded ones allocates their buffers.
std::vector<Projection> projections_of(OperatorPass& pass, bool with_gradients = false) {
  const Operator& op = pass.op();
  const Matrix weight = pass.parameters.weight(op.parameters[0]);
  StageParameters::Destination gradient;
  Vector bias, bias_gradient;
  if (op.parameters.size() > 1) bias = flat(pass.parameters.weight(op.parameters[1]));
  if (with_gradients) {
    gradient = pass.parameters.gradient_to_write(op.parameters[0]);
    if (op.parameters.size() > 1) bias_gradient = flat(pass.parameters.gradient(op.parameters[1]));
  }
  if (op.outputs.size() == 1)
    return {{op.outputs[0], weight, gradient.gradient, gradient.adds, bias, bias_gradient}};
  std::vector<Projection> projections;
  std::int64_t first = 0;
  for (const TensorId output : op.outputs) {
    const std::int64_t columns = pass.width(output);
    Projection projection{output, columns_of(weight, first, columns), {}, gradient.adds, {}, {}};
    if (with_gradients) projection.weight_gradient = columns_of(gradient.gradient, first, columns);
    if (!bias.empty()) projection.bias = part_of(bias, first, columns);
    if (!bias_gradient.empty()) projection.bias_gradient = part_of(bias_gradient, first, columns);
    projections.push_back(projection);
    first += columns;
  }
  return projections;
}

/// Whether the tensor is the input of the loss: stored in fp32 and accounted separately.
bool is_logits(const OperatorPass& pass, TensorId tensor) {
  const auto next = pass.id.index() + 1;
  return next < pass.rank.model.operators.size() &&
         std::holds_alternative<CrossEntropy>(pass.rank.model.operators[next].shape) &&
         pass.rank.model.operators[next].inputs.front() == tensor;
}

/// Column-parallel: processes all tokens of the tensor group, with different columns on each rank.
bool is_column_cut(const OperatorPass& pass, const Linear& linear) {
  return pass.is_cut() && linear.cut == LinearCut::kColumn;
}
bool is_row_cut(const OperatorPass& pass, const Linear& linear) {
  return pass.is_cut() && linear.cut == LinearCut::kRow;
}

/// The operator at this distance if it is a GELU of the same layer.
std::optional<OperatorPass> gelu_beside(const OperatorPass& pass, int distance) {
  const ModelGraph& model = pass.rank.model;
  const std::int32_t number = pass.id.value + distance;
  const auto holds = [](const Layer& layer, std::int32_t id) {
    return id >= layer.first_operator && id < layer.first_operator + layer.operator_count;
  };
  if (std::ranges::none_of(model.layers, [&](const Layer& layer) {
        return holds(layer, pass.id.value) && holds(layer, number);
      }))
    return std::nullopt;
  OperatorPass beside = pass;
  beside.id = OperatorId(number);
  beside.buffers = pass.next_buffers;
  const auto* shape = std::get_if<Activation>(&beside.op().shape);
  if (shape == nullptr || shape->kind != ActivationKind::kGeluTanh) return std::nullopt;
  return beside;
}

/// Fusing a product with the GELU after it, or with the derivative of the GELU before it, saves
/// memory traffic on a device. Under the virtual clock kernels are timed one by one, as in the
/// graph.
bool fuses_gelu(const OperatorPass& pass) {
  return pass.rank.queue != nullptr && pass.rank.queue->timing() == QueueTiming::kNone;
}

/// The GELU after this linear layer if the product may compute its output, too. Must not extend the
/// lifetime of buffers beyond the memory prediction: with recomputation and gathered sequences
/// inputs are freed in between.
std::optional<OperatorPass> gelu_behind(const OperatorPass& pass, const Linear& linear) {
  const Strategy& s = pass.sharding.strategy;
  if (!fuses_gelu(pass) || is_row_cut(pass, linear) || pass.op().outputs.size() != 1 ||
      s.recompute.kind != RecomputeKind::kNone || s.sequence_parallel)
    return std::nullopt;
  std::optional<OperatorPass> gelu = gelu_beside(pass, 1);
  return gelu && gelu->input() == pass.output() ? gelu : std::nullopt;
}

/// The GELU before it if the backward product may compute the gradient of the GELU's input.
std::optional<OperatorPass> gelu_before(const OperatorPass& pass, const Linear& linear) {
  if (!fuses_gelu(pass) || is_column_cut(pass, linear) || pass.op().outputs.size() != 1 ||
      pass.state.find(pass.input(), Form::kGradient) != nullptr)
    return std::nullopt;
  std::optional<OperatorPass> gelu = gelu_beside(pass, -1);
  if (!gelu || gelu->output() != pass.input()) return std::nullopt;
  const auto reads = [&](const Operator& op) {
    return std::ranges::find(op.inputs, pass.input()) != op.inputs.end();
  };
  const bool is_read_here_alone = std::ranges::count_if(pass.rank.model.operators, reads) == 1;
  return is_read_here_alone ? gelu : std::nullopt;
}

}  // namespace

void forward(OperatorPass& pass, const Linear& linear) {
  const Matrix x =
      is_column_cut(pass, linear) ? pass.whole(pass.input()) : pass.value(pass.input());
  const bool transposed = reads_table(pass);
  std::vector<Projection> projections = projections_of(pass);
  for (Projection& p : projections) {
    const std::int64_t columns = transposed ? p.weight.rows : p.weight.columns;
    const bool logits = is_logits(pass, p.output);
    p.result =
        pass.make(p.output, Form::kValue, x.rows, columns, logits ? Dtype::kFp32 : pass.rank.dtype);
  }
  join(projections);
  for (const Projection& p : projections) {
    // Row-parallel outputs are summed over the ranks: only one rank adds the bias.
    const bool adds_bias = !is_row_cut(pass, linear) || pass.sharding.at.tensor == 0;
    Matrix gelu;
    if (std::optional<OperatorPass> behind = gelu_behind(pass, linear)) {
      gelu = behind->make_value(behind->output(), x.rows);
      pass.state.made_with_product.insert(behind->id.value);
    }
    pass.rank.run(pass.rank.kernels.gemm, {.a = x,
                                           .b = p.weight,
                                           .transpose_b = transposed,
                                           .c = p.result,
                                           .bias = adds_bias ? p.bias : Vector{},
                                           .gelu = gelu});
  }
}

namespace {

/// Computes the gradient of the preceding GELU's input directly; that of its output is never
/// stored.
void backward_through_gelu(OperatorPass& pass, OperatorPass& gelu, const Matrix& dy,
                           const Projection& p) {
  const Matrix x = gelu.value(gelu.input());
  const Matrix dx = gelu.make(gelu.input(), Form::kGradient, x.rows, x.columns, pass.rank.dtype);
  pass.state.made_with_product.insert(gelu.id.value);
  pass.rank.run(
      pass.rank.kernels.gemm,
      {.a = dy, .b = p.weight, .transpose_b = !reads_table(pass), .c = dx, .slope_at = x});
}

/// The results become the gradients of the outputs.
void set_gradients(OperatorPass& pass, const Linear& linear, std::vector<Projection>& projections) {
  for (Projection& p : projections)
    p.result = is_row_cut(pass, linear) ? pass.whole_gradient(p.output) : pass.gradient(p.output);
  join(projections);
}

}  // namespace

void backward_input(OperatorPass& pass, const Linear& linear) {
  const bool partial = is_column_cut(pass, linear);
  const bool transposed = reads_table(pass);
  std::vector<Projection> projections = projections_of(pass);
  set_gradients(pass, linear, projections);
  for (const Projection& p : projections) {
    const Matrix dy = p.result;
    if (std::optional<OperatorPass> gelu = gelu_before(pass, linear))
      return backward_through_gelu(pass, *gelu, dy, p);
    const std::int64_t columns = transposed ? p.weight.columns : p.weight.rows;
    pass.into_gradient(pass.input(), partial ? Form::kPartialGradient : Form::kGradient,
                       ConstMatrix{nullptr, dy.rows, columns, columns, pass.rank.dtype},
                       [&](const Matrix& dx, bool adds) {
                         pass.rank.run(pass.rank.kernels.gemm, {.a = dy,
                                                                .b = p.weight,
                                                                .transpose_b = !transposed,
                                                                .c = dx,
                                                                .beta = adds ? 1.0F : 0.0F});
                       });
  }
}

void backward_weight(OperatorPass& pass, const Linear& linear) {
  const Matrix x =
      is_column_cut(pass, linear) ? pass.whole(pass.input()) : pass.value(pass.input());
  const bool transposed = reads_table(pass);
  std::vector<Projection> projections = projections_of(pass, /*with_gradients=*/true);
  set_gradients(pass, linear, projections);
  for (const Projection& p : projections) {
    const Matrix dy = p.result;
    pass.rank.run(pass.rank.kernels.gemm, {.a = transposed ? dy : x,
                                           .transpose_a = true,
                                           .b = transposed ? x : dy,
                                           .c = p.weight_gradient,
                                           .beta = p.adds_gradient ? 1.0F : 0.0F});
    // Row-parallel: every tensor rank sums the bias gradient over its own rows only.
    if (!p.bias.empty())
      pass.rank.run(pass.rank.kernels.bias_gradient,
                    {.dy = is_row_cut(pass, linear) ? pass.gradient(p.output) : dy,
                     .dbias = floats_of(p.bias_gradient)});
  }
}

// ---- element by element ----

namespace {

ActivationFunction function_of(ActivationKind kind) {
  constexpr std::array kFunctions{
      ActivationFunction::kGeluTanh,     ActivationFunction::kGeluErf,
      ActivationFunction::kRelu,         ActivationFunction::kSquaredRelu,
      ActivationFunction::kSwiGlu,       ActivationFunction::kGegluTanh,
      ActivationFunction::kGegluErf,     ActivationFunction::kReglu,
      ActivationFunction::kClampedSwiGlu};
  return entry_of(kFunctions, kind);
}

/// The two inputs of a gated activation: two tensors, or two halves of one.
struct Gated {
  Matrix gate, up;
};
Gated split_gate(const Matrix& both) {
  return {columns_of(both, 0, both.columns / 2),
          columns_of(both, both.columns / 2, both.columns / 2)};
}

}  // namespace

void forward(OperatorPass& pass, const Activation& activation) {
  if (pass.state.made_with_product.erase(pass.id.value) > 0) return;
  const ActivationFunction function = function_of(activation.kind);
  const Matrix x = pass.value(pass.input());
  const Matrix y = pass.make_value(pass.output(), x.rows);
  ActivationForward work{
      .function = function, .x = x, .y = y, .limit = static_cast<float>(activation.limit)};
  if (is_gated(function)) {
    const Gated gated =
        pass.op().inputs.size() > 1 ? Gated{x, pass.value(pass.input(1))} : split_gate(x);
    work.x = gated.gate;
    work.up = gated.up;
  }
  pass.rank.run(pass.rank.kernels.activation_forward, work);
}

void backward_input(OperatorPass& pass, const Activation& activation) {
  if (pass.state.made_with_product.erase(pass.id.value) > 0) return;
  const ActivationFunction function = function_of(activation.kind);
  const Matrix x = pass.value(pass.input()), dy = pass.gradient(pass.output());
  const bool two_inputs = pass.op().inputs.size() > 1;
  const auto new_gradient = [&](TensorId input, std::int64_t columns) {
    MW_CHECK(pass.state.find(input, Form::kGradient) == nullptr);  // no other consumer
    return pass.make(input, Form::kGradient, x.rows, columns, pass.rank.dtype);
  };
  const Matrix dx = new_gradient(pass.input(), x.columns);
  ActivationBackward work{.function = function,
                          .x = x,
                          .dy = dy,
                          .dx = dx,
                          .limit = static_cast<float>(activation.limit)};
  if (is_gated(function)) {
    const Gated in = two_inputs ? Gated{x, pass.value(pass.input(1))} : split_gate(x);
    const Gated out =
        two_inputs ? Gated{dx, new_gradient(pass.input(1), x.columns)} : split_gate(dx);
    work.x = in.gate;
    work.up = in.up;
    work.dx = out.gate;
    work.dup = out.up;
  }
  pass.rank.run(pass.rank.kernels.activation_backward, work);
}

}  // namespace meshwright
