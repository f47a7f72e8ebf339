#include "models/kineto/kineto_operators.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>

#include "core/base/error.hpp"
#include "core/base/json_value.hpp"
#include "models/import/import_lines.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kMostTensorElements = std::int64_t{1} << 50;

// ---- operators by name ----

std::span<const OperatorRule> known_operators() {
  using enum InputLayout;
  static constexpr OperatorRule kRules[] = {
      {"aten::mm", Routine::kProduct, kProduct, 0},
      {"aten::addmm", Routine::kProduct, kProduct, 1},
      {"aten::_addmm_activation", Routine::kProduct, kProduct, 1},
      {"aten::_scaled_mm", Routine::kProduct, kProduct, 0},
      {"aten::linear", Routine::kProduct, kLinear, 0},
      {"aten::bmm", Routine::kProduct, kBatchedProduct, 0},
      {"aten::baddbmm", Routine::kProduct, kBatchedProduct, 1},
      {"aten::_grouped_mm", Routine::kProduct, kGroupedProduct, 0},
      {"aten::_scaled_grouped_mm", Routine::kProduct, kGroupedProduct, 0},
      // Fused attention: position of the queries and of is_causal (custom_mask_type).
      {"aten::_flash_attention_forward", Routine::kAttention, kHeadsLast, 0, 8},
      {"aten::_flash_attention_backward", Routine::kAttention, kHeadsLast, 1, 11},
      {"aten::_scaled_dot_product_flash_attention", Routine::kAttention, kHeadsFirst, 0, 4},
      {"aten::_scaled_dot_product_flash_attention_backward", Routine::kAttention, kHeadsFirst, 1,
       11},
      {"aten::_scaled_dot_product_cudnn_attention", Routine::kAttention, kHeadsFirst, 0, 6},
      {"aten::_scaled_dot_product_cudnn_attention_backward", Routine::kAttention, kHeadsFirst, 1,
       14},
      {"aten::_cudnn_attention_forward", Routine::kAttention, kHeadsFirst, 0, 10},
      {"aten::_cudnn_attention_backward", Routine::kAttention, kHeadsFirst, 1, 14},
      {"aten::_efficient_attention_forward", Routine::kAttention, kHeadsLast, 0, 9},
      {"aten::_efficient_attention_backward", Routine::kAttention, kHeadsLast, 1, 14},
      {"aten::_scaled_dot_product_efficient_attention", Routine::kAttention, kHeadsFirst, 0, 6},
      {"aten::_scaled_dot_product_efficient_attention_backward", Routine::kAttention, kHeadsFirst,
       1, 11},
      {"flash_attn::_flash_attn_forward", Routine::kAttention, kHeadsLast, 0, 5},
      {"flash_attn::_flash_attn_backward", Routine::kAttention, kHeadsLast, 1, 11},
      {"flash_attn_3::fwd", Routine::kAttention, kHeadsLast, 0},
      {"flash_attn_3::bwd", Routine::kAttention, kHeadsLast, 1},
      {"FlashAttnFunc", Routine::kAttention, kHeadsLast, 0},
      {"aten::layer_norm", Routine::kLayerNorm, kElements, 0},
      {"aten::native_layer_norm", Routine::kLayerNorm, kElements, 0},
      {"aten::native_layer_norm_backward", Routine::kLayerNorm, kElements, 1},
      {"FusedLayerNormAffineFunction", Routine::kLayerNorm},
      {"FusedLayerNormAffineMixedDtypesFunction", Routine::kLayerNorm},
      {"FastLayerNormFN", Routine::kLayerNorm},
      {"aten::rms_norm", Routine::kRmsNorm},
      {"aten::_fused_rms_norm", Routine::kRmsNorm},
      {"aten::_fused_rms_norm_backward", Routine::kRmsNorm, kElements, 1},
      {"FusedRMSNormAffineFunction", Routine::kRmsNorm},
      {"FusedRMSNormAffineMixedDtypesFunction", Routine::kRmsNorm},
      {"LigerRMSNormFunction", Routine::kRmsNorm},
      {"aten::gelu", Routine::kGelu},
      {"aten::gelu_backward", Routine::kGelu, kElements, 1},
      {"aten::relu", Routine::kRelu},
      {"aten::threshold_backward", Routine::kRelu},
      {"aten::silu", Routine::kSwiGlu},
      {"aten::silu_backward", Routine::kSwiGlu, kElements, 1},
      {"LigerSiLUMulFunction", Routine::kSwiGlu},
      {"aten::_softmax", Routine::kSoftmax},
      {"aten::_softmax_backward_data", Routine::kSoftmax},
      {"ScaledUpperTriangMaskedSoftmax", Routine::kSoftmax},
      {"ScaledMaskedSoftmax", Routine::kSoftmax},
      {"ScaledSoftmax", Routine::kSoftmax},
      {"aten::cross_entropy_loss", Routine::kCrossEntropy},
      {"aten::log_softmax", Routine::kCrossEntropy},
      {"aten::_log_softmax", Routine::kCrossEntropy},
      {"aten::_log_softmax_backward_data", Routine::kCrossEntropy},
      {"aten::nll_loss_nd", Routine::kCrossEntropy, kElements, 0, -1, false},
      {"aten::nll_loss", Routine::kCrossEntropy, kElements, 0, -1, false},
      {"aten::nll_loss_forward", Routine::kCrossEntropy, kElements, 0, -1, false},
      {"aten::nll_loss_backward", Routine::kCrossEntropy, kElements, 1, -1, false},
      {"_VocabParallelCrossEntropy", Routine::kCrossEntropy},
      {"LigerCrossEntropyFunction", Routine::kCrossEntropy},
      // Column sums, if it belongs to the backward pass of a linear layer.
      {"aten::sum", Routine::kBias},
      {"aten::embedding", Routine::kEmbedding, kLookup, 0},
      {"aten::embedding_dense_backward", Routine::kEmbedding, kElements, 0},
      {"aten::_fused_adamw_", Routine::kUpdate, kTensorList, 0},
      {"aten::_fused_adam_", Routine::kUpdate, kTensorList, 0},
      // One of the operators of the unfused AdamW, so that parameters are counted once.
      {"aten::_foreach_addcdiv_", Routine::kUpdate, kTensorList, 0},
  };
  return kRules;
}

// ---- inputs ----

std::vector<std::int64_t> integers_in(const JsonArray& array) {
  std::vector<std::int64_t> values;
  for (const JsonValue& value : array) {
    const auto* number = value.as<std::int64_t>();
    if (number == nullptr || *number < 0 || *number > kMostTensorElements) return {};
    values.push_back(*number);
  }
  return values;
}

bool is_list_of_tensors(const JsonArray& array) {
  return !array.empty() && array.front().as<JsonArray>() != nullptr;
}

void read_sizes(const JsonValue& value, OperatorArgument& argument) {
  const auto* array = value.as<JsonArray>();
  if (array == nullptr) return;
  if (!is_list_of_tensors(*array)) {
    argument.sizes = integers_in(*array);
    return;
  }
  for (const JsonValue& tensor : *array)
    if (const auto* sizes = tensor.as<JsonArray>()) argument.tensors.push_back(integers_in(*sizes));
}

/// The entries of a JSON array; empty if the text is not one.
JsonArray entries_of(const std::string& text) {
  if (text.empty()) return {};
  try {
    JsonValue value = parse_json(text, "inputs");
    if (auto* array = std::get_if<JsonArray>(&value.of)) return std::move(*array);
  } catch (const InputError&) {
    // An argument that cannot be read counts as not recorded: the trace as a whole was valid JSON,
    // but may nest deeper than parse_json() accepts.
  }
  return {};
}

/// Product of sizes; 0 if empty or too large.
std::int64_t elements_of(const std::vector<std::int64_t>& sizes) {
  if (sizes.empty()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    if (size <= 0 || product > kMostTensorElements / size) return 0;
    product *= size;
  }
  return product;
}

const OperatorArgument* argument_at(const std::vector<OperatorArgument>& arguments, int index) {
  return index >= 0 && static_cast<std::size_t>(index) < arguments.size()
             ? &arguments[static_cast<std::size_t>(index)]
             : nullptr;
}

// ---- sizes ----

using Sizes = std::vector<std::int64_t>;

std::optional<OperatorSize> product_of(const Sizes& a, const Sizes& b) {
  if (a.size() != 2 || b.size() != 2 || a[1] != b[0]) return std::nullopt;
  return OperatorSize{.m = a[0], .n = b[1], .k = a[1]};
}

std::optional<OperatorSize> linear_of(const Sizes& a, const Sizes& b) {
  if (a.empty() || b.size() != 2 || a.back() != b[1] || a.back() == 0) return std::nullopt;
  return OperatorSize{.m = elements_of(a) / a.back(), .n = b[0], .k = b[1]};
}

std::optional<OperatorSize> batched_of(const Sizes& a, const Sizes& b) {
  if (a.size() != 3 || b.size() != 3 || a[0] != b[0] || a[2] != b[1]) return std::nullopt;
  return OperatorSize{.batch = a[0], .m = a[1], .n = b[2], .k = a[2]};
}

/// Rows are distributed over the experts; a kernel's m (k for weight gradients) is their mean.
std::optional<OperatorSize> grouped_of(const Sizes& a, const Sizes& b, std::int64_t experts) {
  if (a.size() == 2 && b.size() == 3 && a[1] == b[1] && b[0] > 0)
    return OperatorSize{.batch = b[0], .m = (a[0] + b[0] - 1) / b[0], .n = b[2], .k = a[1]};
  if (a.size() == 2 && b.size() == 2 && a[1] == b[0] && experts > 0)
    return OperatorSize{
        .batch = experts, .m = a[0], .n = b[1], .k = (a[1] + experts - 1) / experts};
  return std::nullopt;
}

std::optional<OperatorSize> attention_of(const Sizes& q, const Sizes& k, const Sizes& v,
                                         bool heads_last) {
  if (q.size() != 4 || elements_of(q) == 0) return std::nullopt;
  const std::size_t heads = heads_last ? 2 : 1, length = heads_last ? 1 : 2;
  const bool has_keys = k.size() == 4, has_values = v.size() == 4;
  OperatorSize size{.batch = q[0] * q[heads], .m = q[length], .k = q[3]};
  size.n = has_keys ? k[length] : size.m;
  size.sequences = q[0];
  size.key_heads = has_keys ? k[heads] : q[heads];
  size.value_size = has_values ? v[3] : q[3];
  return size;
}

/// True unless the trace says otherwise: language models are trained with causal attention.
bool is_causal(const OperatorRule& rule, const std::vector<OperatorArgument>& arguments) {
  const OperatorArgument* argument = argument_at(arguments, rule.causal);
  if (argument == nullptr || argument->value.empty()) return true;
  return argument->value != "False" && argument->value != "0";
}

/// Positive sizes, and no matrix with more than kMostTensorElements.
bool is_plausible(const OperatorSize& size) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 32;
  if (size.elements < 0 || size.elements > kMostTensorElements) return false;
  if (size.elements > 0) return true;
  const auto [b, m, n, k] = std::tuple(size.batch, size.m, size.n, size.k);
  const std::int64_t widest = std::max(k, size.value_size);
  return std::min({b, m, n, k, size.sequences}) > 0 &&
         std::max({b, m, n, widest, size.key_heads}) < kLargest && elements_of({b, m, n}) > 0 &&
         elements_of({b, m, widest}) > 0 && elements_of({b, k, n}) > 0 &&
         elements_of({size.sequences, std::max<std::int64_t>(1, size.key_heads), n, widest}) > 0;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [text](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

}  // namespace

std::vector<OperatorArgument> arguments_of(const KinetoInputs& inputs) {
  const JsonArray dims = entries_of(inputs.dims), types = entries_of(inputs.types);
  const JsonArray strides = entries_of(inputs.strides), values = entries_of(inputs.values);
  std::vector<OperatorArgument> arguments(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    read_sizes(dims[i], arguments[i]);
    if (i < types.size())
      if (const auto* type = types[i].as<std::string>()) arguments[i].type = *type;
    if (i < strides.size())
      if (const auto* steps = strides[i].as<JsonArray>(); steps && !is_list_of_tensors(*steps))
        arguments[i].strides = integers_in(*steps);
    if (i < values.size())
      if (const auto* value = values[i].as<std::string>()) arguments[i].value = *value;
  }
  return arguments;
}

std::optional<Dtype> dtype_of_torch_type(std::string_view type) {
  if (type == "c10::BFloat16") return Dtype::kBf16;
  if (type == "c10::Half") return Dtype::kFp16;
  if (type == "float") return Dtype::kFp32;
  if (type.starts_with("c10::Float8")) return Dtype::kFp8;
  return std::nullopt;
}

std::int64_t bytes_of_nccl_type(std::string_view type) {
  if (has_any(type, {"BFloat16", "Half", "Short"})) return 2;
  if (has_any(type, {"Float8", "Byte", "Char", "Bool"})) return 1;
  if (has_any(type, {"Double", "Long"})) return 8;
  if (has_any(type, {"Float", "Int"})) return 4;
  return 0;
}

const OperatorRule* rule_of(std::string_view operator_name) {
  const auto find = [](std::string_view name) -> const OperatorRule* {
    const std::span<const OperatorRule> rules = known_operators();
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [name](const OperatorRule& r) { return r.name == name; });
    return rule == rules.end() ? nullptr : &*rule;
  };
  if (const OperatorRule* rule = find(operator_name)) return rule;
  constexpr std::string_view kBackward = "Backward";
  if (!operator_name.ends_with(kBackward)) return nullptr;
  operator_name.remove_suffix(kBackward.size());
  return operator_name.starts_with("aten::") ? nullptr : find(operator_name);
}

std::optional<OperatorSize> size_of(const OperatorRule& rule,
                                    const std::vector<OperatorArgument>& arguments) {
  static const OperatorArgument kNone;
  const auto at = [&](int offset) -> const OperatorArgument& {
    const OperatorArgument* argument = argument_at(arguments, rule.first + offset);
    return argument == nullptr ? kNone : *argument;
  };
  using enum InputLayout;
  const OperatorArgument &a = at(0), &b = at(1);
  std::optional<OperatorSize> size;
  switch (rule.shape) {
    case kProduct:
      size = product_of(a.sizes, b.sizes);
      break;
    case kLinear:
      size = linear_of(a.sizes, b.sizes);
      break;
    case kBatchedProduct:
      size = batched_of(a.sizes, b.sizes);
      break;
    case kGroupedProduct:
      size = grouped_of(a.sizes, b.sizes, at(2).sizes.size() == 1 ? at(2).sizes[0] : 0);
      break;
    case kHeadsLast:
    case kHeadsFirst:
      size = attention_of(a.sizes, b.sizes, at(2).sizes, rule.shape == kHeadsLast);
      if (size) size->causal = is_causal(rule, arguments);
      break;
    case kElements:
      size = OperatorSize{.elements = elements_of(a.sizes)};
      break;
    case kLookup:
      if (a.sizes.size() == 2)
        size = OperatorSize{.elements = elements_of({elements_of(b.sizes), a.sizes[1]})};
      break;
    case kTensorList: {
      size = OperatorSize{};
      for (const Sizes& tensor : a.tensors)
        size->elements = std::min(size->elements + elements_of(tensor), kMostTensorElements);
      break;
    }
  }
  const bool needs_elements =
      rule.shape == kElements || rule.shape == kLookup || rule.shape == kTensorList;
  if (!size || !is_plausible(*size) || (needs_elements && size->elements == 0)) return std::nullopt;
  size->dtype = dtype_of_torch_type(a.type);
  size->is_transposed = a.strides.size() == 2 && a.sizes.size() == 2 && a.strides[0] == 1 &&
                        a.strides[1] >= a.sizes[0] && a.sizes[1] > 1;
  return size;
}

std::optional<OperatorSize> linear_function_size(const std::vector<OperatorArgument>& arguments) {
  if (arguments.empty()) return std::nullopt;
  const OperatorArgument& x = arguments.front();
  std::optional<OperatorSize> found;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    std::optional<OperatorSize> size = linear_of(x.sizes, arguments[i].sizes);
    if (!size || !is_plausible(*size)) continue;
    if (found) return std::nullopt;
    found = size;
  }
  if (found) found->dtype = dtype_of_torch_type(x.type);
  return found;
}

LargestTensor largest_tensor(const std::vector<OperatorArgument>& arguments) {
  LargestTensor largest;
  const auto take = [&](const Sizes& sizes) {
    if (const std::int64_t elements = elements_of(sizes); elements > largest.elements)
      largest = {elements, sizes.back(), static_cast<int>(sizes.size())};
  };
  for (const OperatorArgument& argument : arguments) {
    take(argument.sizes);
    for (const Sizes& tensor : argument.tensors) take(tensor);
  }
  return largest;
}

std::string_view name_of(KernelNameKind kind) {
  static constexpr std::array<std::string_view, kKernelNameKindCount> kNames{
      "product",    "attention", "norm",      "softmax",     "embedding", "cross-entropy",
      "activation", "optimizer", "reduction", "elementwise", "nccl",      "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// Libraries of products: cuBLAS (sm80_xmma, ampere_bf16_s16816gemm, nvjet), CUTLASS, Transformer
/// Engine, DeepGEMM; of attention: flash-attn, cuDNN, xFormers (fmha). Order matters: the names of
/// fused attention contain "gemm" and "softmax".
KernelNameKind kind_of_kernel_name(std::string_view name) {
  const std::string text = lower_case(name);
  const auto has = [&](std::initializer_list<std::string_view> parts) {
    return has_any(text, parts);
  };
  if (has({"nccl", "rccl"})) return KernelNameKind::kNccl;
  if (has({"flash_", "flashattn", "fmha", "_sdpa_", "attention", "mha_"}))
    return KernelNameKind::kAttention;
  if (has({"multi_tensor_apply", "adam", "foreach"})) return KernelNameKind::kOptimizer;
  if (has({"gemm", "nvjet", "cublas", "splitkreduce", "xmma", "wgrad", "_mm_", "triton_tem_fused"}))
    return KernelNameKind::kProduct;
  if (has({"nll_loss", "cross_entropy", "log_softmax", "logsoftmax"})) return KernelNameKind::kLoss;
  if (has({"softmax"})) return KernelNameKind::kSoftmax;
  if (has({"layer_norm", "layernorm", "rms_norm", "rmsnorm", "rsqrt", "ln_fwd", "ln_bwd"}))
    return KernelNameKind::kNorm;
  if (has({"gelu", "silu", "swiglu", "relu"})) return KernelNameKind::kActivation;
  if (has({"embedding"})) return KernelNameKind::kEmbedding;
  if (has({"cutlass"})) return KernelNameKind::kProduct;
  if (has({"reduce_kernel", "triton_red", "triton_per"})) return KernelNameKind::kReduction;
  if (has({"elementwise", "triton_poi", "catarray", "copy", "fill", "dropout", "rope", "rotary"}))
    return KernelNameKind::kElementwise;
  return KernelNameKind::kOther;
}

std::optional<Routine> routine_of_generated(std::string_view kernel) {
  if (!kernel.starts_with("triton_")) return std::nullopt;
  const auto has = [&](std::string_view part) {
    return kernel.find(part) != std::string_view::npos;
  };
  switch (kind_of_kernel_name(kernel)) {
    case KernelNameKind::kNorm:
      return has("layer_norm") ? Routine::kLayerNorm : Routine::kRmsNorm;
    case KernelNameKind::kLoss:
      return Routine::kCrossEntropy;
    case KernelNameKind::kSoftmax:
      return Routine::kSoftmax;
    case KernelNameKind::kEmbedding:
      return Routine::kEmbedding;
    case KernelNameKind::kActivation:
      return has("gelu") ? Routine::kGelu : has("silu") ? Routine::kSwiGlu : Routine::kRelu;
    default:
      return std::nullopt;
  }
}

}  // namespace meshwright
