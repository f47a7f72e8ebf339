/// What the operators of a Kineto trace compute, in terms of core/base/kernel.hpp: from the
/// operator's name and inputs, or, if those are missing, from the kernel's name. Argument positions
/// follow PyTorch's native_functions.yaml (2.0 to 2.9) and flash-attn's custom operators (2.7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/formats/kineto.hpp"

namespace meshwright {

/// One argument of an operator: a tensor, a list of tensors, or something else (no sizes).
struct OperatorArgument {
  std::vector<std::int64_t> sizes;                 ///< of a tensor
  std::vector<std::vector<std::int64_t>> tensors;  ///< of a list of tensors
  std::vector<std::int64_t> strides;               ///< empty: not recorded
  std::string type;                                ///< "c10::BFloat16", "Scalar", …
  std::string value;                               ///< "True", "0.1"; of a tensor empty
  friend bool operator==(const OperatorArgument&, const OperatorArgument&) = default;
};
/// Empty if the inputs are malformed.
std::vector<OperatorArgument> arguments_of(const KinetoInputs& inputs);

/// 16-bit, 32-bit and 8-bit floating-point types; nullopt for all others.
std::optional<Dtype> dtype_of_torch_type(std::string_view type);
/// Bytes of an element by NCCL's or PyTorch's name: "BFloat16", "Long"; 0: unknown.
std::int64_t bytes_of_nccl_type(std::string_view type);

/// How an operator's inputs describe its size.
enum class InputLayout : std::uint8_t {
  kProduct,         ///< [m, k] · [k, n]
  kLinear,          ///< [.., k] · [n, k]^T
  kBatchedProduct,  ///< [b, m, k] · [b, k, n]
  kGroupedProduct,  ///< [rows, k] · [experts, k, n], or [k, rows] · [rows, n]
  kHeadsLast,       ///< queries, keys, values [B, T, A, D]
  kHeadsFirst,      ///< queries, keys, values [B, A, T, D]
  kElements,        ///< one tensor
  kLookup,          ///< table [V, H], indices
  kTensorList       ///< parameters, as a list of tensors
};

/// A known operator. Several operators of one routine may implement one Kernel together; those with
/// `counts` occur once per Kernel.
struct OperatorRule {
  std::string_view name;
  Routine routine = Routine::kProduct;
  InputLayout shape = InputLayout::kElements;
  int first = 0;    ///< argument with the first tensor
  int causal = -1;  ///< argument that says whether attention is causal; -1: not recorded
  bool counts = true;
};
/// Null if the operator is not known. Custom autograd functions are found with and without
/// "Backward" at the end of their name.
const OperatorRule* rule_of(std::string_view operator_name);

/// Sizes of an operator. For memory-bound routines `elements` is the number of elements of the
/// activation that core/operators/operator_work.hpp counts: output of the first product (SwiGLU: of
/// one half), logits, scores, gathered rows, parameters.
struct OperatorSize {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::int64_t sequences = 1, key_heads = 0, value_size = 0;  ///< attention
  std::int64_t elements = 0;
  bool causal = false, is_transposed = false;  ///< first operand of a product
  std::optional<Dtype> dtype = {};
  friend bool operator==(const OperatorSize&, const OperatorSize&) = default;
};
/// nullopt if the inputs do not have the shape of the rule.
std::optional<OperatorSize> size_of(const OperatorRule& rule,
                                    const std::vector<OperatorArgument>& arguments);

/// The product of a custom autograd function, such as Transformer Engine's _LayerNormLinear, whose
/// kernels have no operator of their own: activations [.., k] and exactly one matrix [n, k].
std::optional<OperatorSize> linear_function_size(const std::vector<OperatorArgument>& arguments);

/// Largest tensor among the arguments.
struct LargestTensor {
  std::int64_t elements = 0, last_size = 0;
  int dimensions = 0;
  friend bool operator==(const LargestTensor&, const LargestTensor&) = default;
};
LargestTensor largest_tensor(const std::vector<OperatorArgument>& arguments);

/// Classification of a GPU kernel by its name alone.
enum class KernelNameKind : std::uint8_t {
  kProduct,
  kAttention,
  kNorm,
  kSoftmax,
  kEmbedding,
  kLoss,
  kActivation,
  kOptimizer,
  kReduction,
  kElementwise,
  kNccl,
  kOther
};
inline constexpr int kKernelNameKindCount = 12;
std::string_view name_of(KernelNameKind kind);  ///< "product", …
KernelNameKind kind_of_kernel_name(std::string_view name);

}  // namespace meshwright
