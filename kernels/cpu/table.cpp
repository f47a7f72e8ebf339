// The kernel table of one instruction-set level (vector.hpp).
#include "kernels/cpu/kernels.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {

KernelTable table() {
  KernelTable table;
  table.backend = Backend::kCpu;
  table.gemm = {run, scratch};
  table.grouped_gemm = {run, scratch};
  table.grouped_gemm_weight = {run, scratch};
  table.attention_forward = {run, scratch};
  table.attention_merge = {run, nullptr};
  table.attention_delta = {run, nullptr};
  table.attention_backward = {run, scratch};
  table.attention_sinks = {run, nullptr};
  table.attention_sinks_gradient = {run, nullptr};
  table.norm_forward = {run, nullptr};
  table.norm_backward_input = {run, nullptr};
  table.norm_backward_weight = {run, nullptr};
  table.activation_forward = {run, nullptr};
  table.activation_backward = {run, nullptr};
  table.rotary_table = {reference::run, nullptr};  // a few numbers in double
  table.rotary = {run, nullptr};
  table.copy_heads = {run, nullptr};
  table.embedding_forward = {run, nullptr};
  table.embedding_backward = {run, nullptr};
  table.cross_entropy_maximum = {run, nullptr};
  table.cross_entropy_sum = {run, nullptr};
  table.cross_entropy_loss = {reference::run, nullptr};  // a few numbers in double
  table.cross_entropy_forward = {run, nullptr};
  table.cross_entropy_gradient = {run, nullptr};
  table.add = {run, nullptr};
  table.bias_add = {run, nullptr};
  table.bias_gradient = {run, nullptr};
  table.grouped_bias_gradient = {run, nullptr};
  table.row_gate_forward = {run, nullptr};
  table.row_gate_backward = {run, nullptr};
  table.dropout_forward = {run, nullptr};
  table.dropout_backward = {run, nullptr};
  table.round_to_float8 = {run, nullptr};
  table.reduce = {run, nullptr};
  table.cast = {run, nullptr};
  table.fill = {run, nullptr};
  table.total = {run, nullptr};
  table.mean_squared_error_forward = {run, nullptr};
  table.mean_squared_error_gradient = {run, nullptr};
  table.gate_forward = {run, nullptr};
  table.gate_load = {run, nullptr};
  table.gate_auxiliary_loss = {reference::run, nullptr};  // a few numbers in double
  table.gate_backward = {run, nullptr};
  table.sort_by_expert = {run, nullptr};
  table.gather_rows = {run, nullptr};
  table.combine_rows = {run, nullptr};
  table.combine_weight_gradient = {run, nullptr};
  table.adamw = {run, nullptr};
  table.sgd = {run, nullptr};
  table.squared_norm = {run, nullptr};
  table.clip_scale = {reference::run, nullptr};  // a few numbers in double
  table.pack_bucket = {run, nullptr};
  table.unpack_bucket = {run, nullptr};
  return table;
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
