#include "models/builders/graph_writer.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kMostParameters = std::int64_t{1} << 62;

ActivationCut output_cut(LinearCut cut) {
  return cut == LinearCut::kColumn ? ActivationCut::kFeatures : ActivationCut::kTokens;
}

}  // namespace

GraphWriter::GraphWriter(std::string name, std::string family, std::string where)
    : where_(std::move(where)), builder_(std::move(name), std::move(family)) {}

void GraphWriter::begin_layer(LayerKind kind, std::string prefix) {
  prefix_ = std::move(prefix);
  builder_.begin_layer(kind);
}

void GraphWriter::end_layer(std::int64_t output_width) { builder_.end_layer(output_width); }

ModelGraph GraphWriter::finish(std::int64_t longest_sequence, bool tied_embeddings) {
  return builder_.finish(longest_sequence, tied_embeddings);
}

TensorId GraphWriter::activation(std::string_view name, ActivationTensor shape) {
  return builder_.add_activation(fmt::format("{}{}", prefix_, name), shape);
}

TensorId GraphWriter::parameter(std::string_view name, ParameterTensor shape) {
  std::int64_t elements = 1;
  bool too_many = false;
  for (const std::int64_t extent : shape.shape)
    too_many |= __builtin_mul_overflow(elements, extent, &elements);
  too_many |= __builtin_add_overflow(parameter_count_, elements, &parameter_count_);
  if (too_many || parameter_count_ >= kMostParameters)
    throw InputError(
        {where_, fmt::format("the model has 2^62 or more parameters (at '{}{}')", prefix_, name),
         "check the sizes of the model"});
  if (shape.initial_deviation == ParameterTensor{}.initial_deviation)
    shape.initial_deviation = deviation_;
  return builder_.add_parameter(fmt::format("{}{}", prefix_, name), std::move(shape));
}

void GraphWriter::add(std::string_view name, Operator op) {
  op.name = fmt::format("{}{}", prefix_, name);
  builder_.add(std::move(op));
}

void GraphWriter::set_initial_deviations(double matrices, double into_residual) {
  deviation_ = matrices;
  residual_deviation_ = into_residual;
}

GraphWriter::Lookup GraphWriter::lookup(std::string_view name, EmbeddingLookup shape,
                                        ParameterCut cut) {
  const TensorId table =
      parameter(fmt::format("{}.weight", name), {{shape.rows, shape.width}, cut});
  const TensorId output = activation(name, {.width = shape.width});
  add(name, {.shape = shape, .outputs = {output}, .parameters = {table}});
  return {output, table};
}

TensorId GraphWriter::norm(std::string_view name, TensorId input, const NormShape& shape,
                           std::int64_t width) {
  std::vector<TensorId> parameters;
  if (shape.weighted)
    parameters.push_back(parameter(fmt::format("{}.weight", name),
                                   {.shape = {width}, .initial_value = 1 - shape.offset}));
  if (shape.weighted && shape.biased && shape.kind == NormKind::kLayerNorm)
    parameters.push_back(parameter(fmt::format("{}.bias", name), {{width}}));
  const TensorId output = activation(name, {.width = width});
  add(name, {.shape = Norm{shape.kind, width, shape.epsilon, shape.offset},
             .inputs = {input},
             .outputs = {output},
             .parameters = std::move(parameters),
             .kept = {input}});
  return output;
}

TensorId GraphWriter::head_norm(std::string_view name, TensorId input, const NormShape& shape,
                                std::int64_t width, std::int64_t head_size) {
  std::vector<TensorId> parameters;
  if (shape.weighted)
    parameters.push_back(parameter(
        fmt::format("{}.weight", name),
        {.shape = {head_size > 0 ? head_size : width}, .initial_value = 1 - shape.offset}));
  const TensorId output = activation(name, {.width = width, .cut = ActivationCut::kFeatures});
  add(name, {.shape = Norm{NormKind::kRmsNorm, width, shape.epsilon, shape.offset, head_size},
             .inputs = {input},
             .outputs = {output},
             .parameters = std::move(parameters),
             .kept = {input}});
  return output;
}

TensorId GraphWriter::scale(std::string_view name, TensorId input, double factor,
                            std::int64_t width) {
  if (factor == 1) return input;
  const TensorId output = activation(name, {.width = width});
  add(name, {.shape = Scale{width, factor}, .inputs = {input}, .outputs = {output}});
  return output;
}

std::vector<TensorId> GraphWriter::linears(const LinearSpec& spec, TensorId input) {
  const ParameterCut weight_cut =
      spec.cut == LinearCut::kReplicated ? ParameterCut::kReplicated : ParameterCut::kTensor;
  const ParameterCut bias_cut =
      spec.cut == LinearCut::kColumn ? ParameterCut::kTensor : ParameterCut::kReplicated;
  std::vector<TensorId> parameters{
      parameter(fmt::format("{}.weight", spec.name),
                {.shape = {spec.in, spec.out},
                 .cut = weight_cut,
                 .initial_deviation = spec.into_residual ? residual_deviation_ : deviation_})};
  if (spec.bias)
    parameters.push_back(parameter(fmt::format("{}.bias", spec.name), {{spec.out}, bias_cut}));
  const std::vector<std::int64_t> widths =
      spec.output_widths.empty() ? std::vector{spec.out} : spec.output_widths;
  std::vector<TensorId> outputs;
  for (std::size_t i = 0; i < widths.size(); ++i)
    outputs.push_back(
        activation(widths.size() == 1 ? spec.name : fmt::format("{}.{}", spec.name, i),
                   {.width = widths[i], .cut = output_cut(spec.cut)}));
  add(spec.name, {.shape = Linear{spec.in, spec.out, spec.bias, spec.cut},
                  .inputs = {input},
                  .outputs = outputs,
                  .parameters = std::move(parameters),
                  .kept = {input}});
  return outputs;
}

TensorId GraphWriter::linear(const LinearSpec& spec, TensorId input) {
  return linears(spec, input).front();
}

TensorId GraphWriter::residual(std::string_view name, TensorId left, TensorId right,
                               std::int64_t width, double dropout) {
  const TensorId output = activation(name, {.width = width});
  std::vector<TensorId> kept;
  if (dropout > 0)
    kept.push_back(activation(fmt::format("{}.dropout_mask", name),
                              {.width = width, .element = ElementWidth::kMask}));
  add(name, {.shape = ResidualAdd{width, dropout},
             .inputs = {left, right},
             .outputs = {output},
             .kept = std::move(kept)});
  return output;
}

void GraphWriter::loss(TensorId logits, std::int64_t vocabulary, double softcap) {
  add("loss", {.shape = CrossEntropy{vocabulary, softcap}, .inputs = {logits}, .kept = {logits}});
}

}  // namespace meshwright
