/// Number formats of a training run other than the dtype of its matrix products.
#pragma once

#include <optional>
#include <string_view>

#include "core/dtype.hpp"

namespace meshwright {

struct Precision {
  /// Weight gradients are accumulated over micro-batches and reduced over replicas in this dtype:
  /// fp32 (Megatron-LM with --bf16, or --accumulate-allreduce-grads-in-fp32), or the 16-bit dtype
  /// of the training (Megatron-LM --grad-reduce-in-bf16; FSDP and DeepSpeed without a wider
  /// reduce_dtype). AdamW then converts the gradients that it updates with to fp32 first.
  Dtype gradients = Dtype::kFp32;
  friend bool operator==(const Precision&, const Precision&) = default;
};

/// A dtype in which gradients can be accumulated: "fp32", "bf16", "fp16".
std::optional<Dtype> gradient_dtype_from_name(std::string_view name);

}  // namespace meshwright
