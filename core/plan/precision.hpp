/// Number formats of a training run other than the dtype of its matrix products.
///
/// With fp8 or nvfp4 the GEMMs of linear layers inside blocks, experts included, run in that dtype.
/// Embedding, norms, activations, attention core, router, output head and loss stay in 16 bits, as
/// do outputs of GEMMs and messages. Kernels and copies are those of Transformer Engine
/// (docs.nvidia.com/deeplearning/transformer-engine, "Low precision training", and
/// transformer_engine/pytorch/module/linear.py):
///   forward          the input is quantized twice: along rows for y = x W, along columns for the
///                    weight gradient, which is all that is saved of it
///   input gradient   dy is quantized likewise, along rows for dx = dy W^T, along columns for dW
///   weight gradient  reads the copies along columns
/// The copy along columns of a tensor with a single scale is its transpose; GPUs whose fp8 GEMMs
/// read operands in either layout (compute capability 10.0 and above) do not need it.
/// Sequence-parallel ranks gather quantized tokens; transposes are then made after the gather.
/// Weights are quantized once per step and both copies are cached; with fully sharded parameters
/// (ZeRO 3) once per pass. Transformer Engine fuses some of these kernels with the norm or the
/// activation before them; they are counted separately here.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/dtype.hpp"
#include "core/base/units.hpp"

namespace meshwright {

/// How operands of fp8 GEMMs are scaled (names of Megatron-LM --fp8-recipe).
enum class Fp8Recipe : std::uint8_t {
  kDelayed,     ///< one scale per tensor, from its largest values in earlier steps
  kTensorwise,  ///< one scale per tensor, from its current largest value: one more pass over it
  kBlockwise,   ///< one fp32 scale per 128 elements (DeepSeek-V3, arXiv 2412.19437, section 3.3)
  kMxfp8        ///< one 8-bit scale per 32 elements (OCP Microscaling Formats 1.0)
};
std::string_view name_of(Fp8Recipe recipe);  ///< "delayed", "tensorwise", "blockwise", "mxfp8"
std::optional<Fp8Recipe> fp8_recipe_from_name(std::string_view name);

struct Precision {
  /// Weight gradients are accumulated over micro-batches and reduced over replicas in this dtype:
  /// fp32 (Megatron-LM with --bf16, or --accumulate-allreduce-grads-in-fp32), or the 16-bit dtype
  /// of the training (Megatron-LM --grad-reduce-in-bf16; FSDP and DeepSpeed without a wider
  /// reduce_dtype). AdamW then converts the gradients that it updates with to fp32 first.
  Dtype gradients = Dtype::kFp32;
  Fp8Recipe fp8_recipe = Fp8Recipe::kDelayed;
  /// Weights are kept in fp8 only, and replicas gather them in fp8 (Megatron-LM
  /// --fp8-param-gather). MXFP8 weights are gathered in bf16, because their two copies differ
  /// (--reuse-grad-buf-for-mxfp8-param-ag).
  bool fp8_parameters = false;
  int wide_blocks = 0;  ///< blocks at each end of the model whose GEMMs stay in 16 bits
  friend bool operator==(const Precision&, const Precision&) = default;
};

/// The format of quantized operands, and the kernels that make them.
struct Quantization {
  int element_bits = 8;
  int block = 0;               ///< elements with a common scale; 0: one scale per tensor
  int scale_bits = 0;          ///< of one block
  bool finds_maximum = false;  ///< a pass over the tensor before it can be scaled
  /// The copies along rows and columns of activations and gradients are made by a kernel each.
  /// NVFP4: the latter are transformed by random Hadamard matrices first (arXiv 2509.25149, section
  /// 4).
  bool separate_copies = false;
  friend bool operator==(const Quantization&, const Quantization&) = default;
};
/// `dtype` must be quantized. NVFP4 has an fp8 scale per 16 elements, and one per tensor.
Quantization quantization_of(Dtype dtype, Fp8Recipe recipe);
/// The format of the products, by which they are priced.
ProductFormat product_format_of(Dtype dtype, Fp8Recipe recipe);
/// Elements and their scales.
Bytes quantized_bytes(const Quantization& quantization, std::int64_t elements);

/// A dtype in which gradients can be accumulated: "fp32", "bf16", "fp16".
std::optional<Dtype> gradient_dtype_from_name(std::string_view name);

}  // namespace meshwright
