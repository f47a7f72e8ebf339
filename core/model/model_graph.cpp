#include "core/model/model_graph.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>
#include <utility>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

std::int64_t element_count(const ParameterTensor& parameter) {
  std::int64_t count = 1;
  for (const std::int64_t extent : parameter.shape) count *= extent;
  return count;
}

// ---- validation -----------------------------------------------------------------------------

void check_ids(const ModelGraph& model) {
  const auto holds = [&model]<class Shape>(const std::vector<TensorId>& ids, const Shape*) {
    return std::all_of(ids.begin(), ids.end(), [&model](TensorId id) {
      return id.value >= 0 && id.index() < model.tensors.size() &&
             std::holds_alternative<Shape>(model.tensors[id.index()].shape);
    });
  };
  for (const Operator& op : model.operators) {
    MW_CHECK(holds(op.inputs, static_cast<const ActivationTensor*>(nullptr)));
    MW_CHECK(holds(op.outputs, static_cast<const ActivationTensor*>(nullptr)));
    MW_CHECK(holds(op.kept, static_cast<const ActivationTensor*>(nullptr)));
    MW_CHECK(holds(op.parameters, static_cast<const ParameterTensor*>(nullptr)));
  }
}

/// Every tensor has one writer, writers come before readers, and the graph is acyclic.
void check_acyclic(const ModelGraph& model) {
  using Dag = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
  constexpr std::int32_t kNone = -1;
  std::vector<std::int32_t> writer(model.tensors.size(), kNone);
  for (std::size_t i = 0; i < model.operators.size(); ++i)
    for (const TensorId output : model.operators[i].outputs) {
      MW_CHECK(writer[output.index()] == kNone);
      writer[output.index()] = static_cast<std::int32_t>(i);
    }
  Dag dag(model.operators.size());
  for (std::size_t i = 0; i < model.operators.size(); ++i)
    for (const TensorId input : model.operators[i].inputs) {
      const std::int32_t from = writer[input.index()];
      if (from == kNone) continue;  // an input of the model
      boost::add_edge(static_cast<std::size_t>(from), i, dag);
    }
  std::vector<std::size_t> order;
  order.reserve(model.operators.size());
  bool acyclic = true;
  try {
    boost::topological_sort(dag, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    acyclic = false;
  }
  MW_CHECK(acyclic);
  for (auto [edge, end] = boost::edges(dag); edge != end; ++edge)
    MW_CHECK(boost::source(*edge, dag) < boost::target(*edge, dag));
}

/// Elements per token in compute precision, without masks, statistics and scores.
std::int64_t width_of(const ModelGraph& model, const std::vector<TensorId>& ids) {
  std::int64_t width = 0;
  for (const TensorId id : ids) {
    const ActivationTensor& tensor = activation_of(model, id);
    if (tensor.element == ElementWidth::kCompute && !tensor.per_key) width += tensor.width;
  }
  return width;
}

void check_shapes(const ModelGraph& model) {
  for (const Operator& op : model.operators) {
    const OperatorWidths required =
        std::visit([](const auto& shape) { return widths_of(shape); }, op.shape);
    if (required.in && !op.inputs.empty()) MW_CHECK(width_of(model, op.inputs) == *required.in);
    if (required.out && !op.outputs.empty()) MW_CHECK(width_of(model, op.outputs) == *required.out);
    if (required.first_parameter && !op.parameters.empty())
      MW_CHECK(element_count(parameter_of(model, op.parameters.front())) ==
               *required.first_parameter);
  }
}

void check_layers(const ModelGraph& model) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    MW_CHECK(layer.first_operator == static_cast<std::int32_t>(next));
    MW_CHECK(layer.operator_count > 0);
    MW_CHECK(layer.kind != LayerKind::kEmbedding || i == 0);
    MW_CHECK(layer.kind != LayerKind::kHead || i + 1 == model.layers.size());
    next += static_cast<std::size_t>(layer.operator_count);
  }
  MW_CHECK(next == model.operators.size());
}

// ---- routed rows ----------------------------------------------------------------------------

int experts_per_token(const OperatorShape& shape) {
  if (const auto* router = std::get_if<Router>(&shape)) return router->experts_per_token;
  if (const auto* dispatch = std::get_if<TokenDispatch>(&shape)) return dispatch->experts_per_token;
  return 1;
}

int experts_of(const OperatorShape& shape) {
  const auto* expert = std::get_if<ExpertLinear>(&shape);
  return expert != nullptr ? expert->experts : 0;
}

/// Routed tensors carry one row per chosen expert: K of the E of their layer's
/// router.
void count_routed_rows(ModelGraph& model) {
  const auto set_rows = [&model](const std::vector<TensorId>& ids, int rows, int experts) {
    for (const TensorId id : ids) {
      auto& tensor = std::get<ActivationTensor>(model.tensors[id.index()].shape);
      if (!tensor.routed) continue;
      tensor.rows_per_token = rows;
      tensor.experts = experts;
    }
  };
  for (const Layer& layer : model.layers) {
    const auto begin = model.operators.begin() + layer.first_operator;
    const auto end = begin + layer.operator_count;
    int rows = 1, experts = 0;
    for (auto op = begin; op != end; ++op) {
      rows = std::max(rows, experts_per_token(op->shape));
      experts = std::max(experts, experts_of(op->shape));
    }
    for (auto op = begin; op != end; ++op) {
      set_rows(op->inputs, rows, experts);
      set_rows(op->outputs, rows, experts);
      set_rows(op->kept, rows, experts);
    }
  }
}

/// Marks keys and values as whole heads, from the attention back through norms and rotations.
void mark_key_value_heads(ModelGraph& model) {
  const auto activation = [&model](TensorId id) -> ActivationTensor& {
    return std::get<ActivationTensor>(model.tensors[id.index()].shape);
  };
  for (auto op = model.operators.rbegin(); op != model.operators.rend(); ++op) {
    if (const auto* attention = std::get_if<Attention>(&op->shape)) {
      for (std::size_t i = 1; i < op->inputs.size(); ++i)
        activation(op->inputs[i]).heads = static_cast<int>(attention->key_value_heads);
    } else if (std::holds_alternative<Norm>(op->shape) ||
               std::holds_alternative<RotaryEmbedding>(op->shape)) {
      if (op->inputs.size() != op->outputs.size()) continue;
      for (std::size_t i = 0; i < op->inputs.size(); ++i)
        if (activation(op->inputs[i]).width == activation(op->outputs[i]).width &&
            activation(op->outputs[i]).heads > 0)
          activation(op->inputs[i]).heads = activation(op->outputs[i]).heads;
    }
  }
}

// ---- layer classes --------------------------------------------------------------------------

/// The first layer that uses each parameter; -1 for tensors that are not parameters.
std::vector<std::int32_t> owners_of_parameters(const ModelGraph& model) {
  std::vector<std::int32_t> owner(model.tensors.size(), -1);
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    for (const Operator& op : operators_of(model, LayerId(i)))
      for (const TensorId id : op.parameters)
        if (owner[id.index()] < 0) owner[id.index()] = static_cast<std::int32_t>(i);
  return owner;
}

/// Compares two layers by pairing their tensors: equal if the pairing is one-to-one and paired
/// tensors have the same shape.
class LayerComparison {
 public:
  LayerComparison(const ModelGraph& model, const std::vector<std::int32_t>& owner)
      : model_(model), owner_(owner) {}

  bool equal(std::size_t a, std::size_t b) {
    const Layer& left = model_.layers[a];
    const Layer& right = model_.layers[b];
    if (left.kind != right.kind || left.operator_count != right.operator_count ||
        left.output_width != right.output_width)
      return false;
    pairs_.clear();
    const std::span<const Operator> lefts = operators_of(model_, LayerId(a));
    const std::span<const Operator> rights = operators_of(model_, LayerId(b));
    for (std::size_t o = 0; o < lefts.size(); ++o) {
      const Operator &x = lefts[o], &y = rights[o];
      if (x.shape != y.shape || !pair(x.inputs, y.inputs) || !pair(x.outputs, y.outputs) ||
          !pair(x.parameters, y.parameters) || !pair(x.kept, y.kept))
        return false;
    }
    // A layer that owns a parameter differs from one that shares another layer's.
    return std::all_of(pairs_.begin(), pairs_.end(), [&](const auto& p) {
      const bool left_owns = owner_[p.first.index()] == static_cast<std::int32_t>(a);
      const bool right_owns = owner_[p.second.index()] == static_cast<std::int32_t>(b);
      return left_owns == right_owns;
    });
  }

 private:
  bool pair(const std::vector<TensorId>& left, const std::vector<TensorId>& right) {
    if (left.size() != right.size()) return false;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const auto known = std::find_if(pairs_.begin(), pairs_.end(), [&](const auto& p) {
        return p.first == left[i] || p.second == right[i];
      });
      if (known != pairs_.end()) {
        if (*known != std::pair(left[i], right[i])) return false;
        continue;
      }
      if (model_.tensors[left[i].index()].shape != model_.tensors[right[i].index()].shape)
        return false;
      pairs_.emplace_back(left[i], right[i]);
    }
    return true;
  }

  const ModelGraph& model_;
  const std::vector<std::int32_t>& owner_;
  std::vector<std::pair<TensorId, TensorId>> pairs_;
};

void number_layer_classes(ModelGraph& model) {
  const std::vector<std::int32_t> owner = owners_of_parameters(model);
  LayerComparison comparison(model, owner);
  std::vector<std::size_t> first_of_class;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto known = std::find_if(first_of_class.begin(), first_of_class.end(),
                                    [&](std::size_t first) { return comparison.equal(first, i); });
    model.layers[i].layer_class = static_cast<std::int32_t>(known - first_of_class.begin());
    if (known == first_of_class.end()) first_of_class.push_back(i);
  }
}

}  // namespace

// ---- figures --------------------------------------------------------------------------------

int block_count(const ModelGraph& model) {
  return static_cast<int>(
      std::count_if(model.layers.begin(), model.layers.end(),
                    [](const Layer& layer) { return layer.kind == LayerKind::kBlock; }));
}

int block_index(const ModelGraph& model, LayerId block) {
  return block.value - (model.layers.front().kind == LayerKind::kBlock ? 0 : 1);
}

int layer_class_count(const ModelGraph& model) {
  std::int32_t count = 0;
  for (const Layer& layer : model.layers) count = std::max(count, layer.layer_class + 1);
  return count;
}

std::int64_t parameter_count(const ModelGraph& model) {
  std::int64_t count = 0;
  for (const Tensor& tensor : model.tensors)
    if (const auto* parameter = std::get_if<ParameterTensor>(&tensor.shape))
      count += element_count(*parameter);
  return count;
}

std::int64_t parameter_count(const ModelGraph& model, LayerId layer) {
  const std::vector<std::int32_t> owner = owners_of_parameters(model);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < model.tensors.size(); ++i)
    if (owner[i] == layer.value) count += element_count(parameter_of(model, TensorId(i)));
  return count;
}

std::int64_t active_parameter_count(const ModelGraph& model) {
  std::int64_t count = parameter_count(model);
  std::vector<bool> seen(model.tensors.size(), false);
  for (const Operator& op : model.operators) {
    const auto* expert = std::get_if<ExpertLinear>(&op.shape);
    if (expert == nullptr) continue;
    for (const TensorId id : op.parameters) {
      if (seen[id.index()]) continue;
      seen[id.index()] = true;
      const std::int64_t per_expert = element_count(parameter_of(model, id)) / expert->experts;
      count -= per_expert * (expert->experts - expert->experts_per_token);
    }
  }
  return count;
}

ModelTraits traits_of(const ModelGraph& model) {
  const auto keep_smallest = [](std::optional<int>& smallest, std::int64_t value) {
    const int count = static_cast<int>(value);
    smallest = smallest ? std::min(*smallest, count) : count;
  };
  ModelTraits traits;
  traits.blocks = block_count(model);
  if (!model.layers.empty()) traits.hidden = model.layers.front().output_width;
  std::int64_t rows = 0;  // of the largest table
  std::int32_t next_class = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (model.layers[i].layer_class < next_class) continue;  // as the first layer of the class
    next_class = model.layers[i].layer_class + 1;
    for (const Operator& op : operators_of(model, LayerId(i))) {
      if (const auto* table = std::get_if<EmbeddingLookup>(&op.shape)) {
        rows = std::max(rows, table->rows);
      } else if (const auto* loss = std::get_if<CrossEntropy>(&op.shape)) {
        traits.vocabulary = loss->vocabulary;
      } else if (const auto* attention = std::get_if<Attention>(&op.shape)) {
        keep_smallest(traits.heads, attention->heads);
        keep_smallest(traits.key_value_heads, attention->key_value_heads);
      } else if (const auto* router = std::get_if<Router>(&op.shape)) {
        keep_smallest(traits.experts, router->experts);
        keep_smallest(traits.experts_per_token, router->experts_per_token);
      }
    }
  }
  // That of the loss, if there is one: a position table may be longer than the token table.
  if (traits.vocabulary == 0) traits.vocabulary = rows;
  return traits;
}

// ---- builder --------------------------------------------------------------------------------

ModelGraphBuilder::ModelGraphBuilder(std::string name, std::string family) {
  graph_.name = std::move(name);
  graph_.family = std::move(family);
}

TensorId ModelGraphBuilder::add_activation(std::string name, ActivationTensor shape) {
  MW_CHECK(shape.width > 0);
  graph_.tensors.push_back({std::move(name), shape});
  return TensorId(graph_.tensors.size() - 1);
}

TensorId ModelGraphBuilder::add_parameter(std::string name, ParameterTensor shape) {
  MW_CHECK(!shape.shape.empty());
  for (const std::int64_t extent : shape.shape) MW_CHECK(extent > 0);
  graph_.tensors.push_back({std::move(name), std::move(shape)});
  return TensorId(graph_.tensors.size() - 1);
}

void ModelGraphBuilder::begin_layer(LayerKind kind) {
  MW_CHECK(!layer_is_open_);
  layer_is_open_ = true;
  Layer layer;
  layer.kind = kind;
  layer.first_operator = static_cast<std::int32_t>(graph_.operators.size());
  graph_.layers.push_back(layer);
}

OperatorId ModelGraphBuilder::add(Operator op) {
  MW_CHECK(layer_is_open_);
  graph_.operators.push_back(std::move(op));
  ++graph_.layers.back().operator_count;
  return OperatorId(graph_.operators.size() - 1);
}

void ModelGraphBuilder::end_layer(std::int64_t output_width) {
  MW_CHECK(layer_is_open_);
  layer_is_open_ = false;
  graph_.layers.back().output_width = output_width;
}

ModelGraph ModelGraphBuilder::finish(std::int64_t longest_sequence, bool tied_embeddings) {
  MW_CHECK(!layer_is_open_);
  graph_.longest_sequence = longest_sequence;
  graph_.tied_embeddings = tied_embeddings;
  check_ids(graph_);
  check_acyclic(graph_);
  check_shapes(graph_);
  check_layers(graph_);
  count_routed_rows(graph_);
  mark_key_value_heads(graph_);
  number_layer_classes(graph_);
  return std::move(graph_);
}

bool has_vocabulary_layers(const ModelGraph& model) {
  if (model.layers.size() < 2) return false;
  const auto words_are_cut = [&](const Operator& op) {
    return std::any_of(op.parameters.begin(), op.parameters.end(), [&](TensorId id) {
      return parameter_of(model, id).cut == ParameterCut::kTensor;
    });
  };
  const std::span<const Operator> first = operators_of(model, LayerId(0));
  const std::span<const Operator> last = operators_of(model, LayerId(model.layers.size() - 1));
  if (first.empty() || last.size() < kOutputOperators) return false;
  const Operator& logits = last[last.size() - kOutputOperators];
  const auto* product = std::get_if<Linear>(&logits.shape);
  return std::holds_alternative<EmbeddingLookup>(first.front().shape) &&
         words_are_cut(first.front()) && product != nullptr && product->cut == LinearCut::kColumn &&
         std::holds_alternative<CrossEntropy>(last.back().shape);
}

}  // namespace meshwright
