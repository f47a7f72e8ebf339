#include "gui/timeline/kinds.hpp"

#include <array>
#include <string>

namespace meshwright::gui {

std::string_view name_of(SliceKind kind) {
  if (static_cast<int>(kind) < kTaskKindCount)
    return meshwright::name_of(static_cast<TaskKind>(kind));
  constexpr std::array<std::string_view, kSliceKindCount - kTaskKindCount> kMeasuredOnly{
      "recompute", "copy", "kernel", "matmul", "attention", "normalization", "elementwise", "host"};
  return kMeasuredOnly[static_cast<std::size_t>(kind) - kTaskKindCount];
}

SliceKind kernel_family(std::string_view name) {
  struct Part {
    std::string_view text;
    SliceKind family;
  };
  // In this order: fused attention kernels may be made of CUTLASS matmuls, and normalization
  // kernels of vectorized loops.
  constexpr std::array kParts{Part{"attention", SliceKind::kAttention},
                              Part{"flash", SliceKind::kAttention},
                              Part{"fmha", SliceKind::kAttention},
                              Part{"sdpa", SliceKind::kAttention},
                              Part{"gemm", SliceKind::kMatmul},
                              Part{"cutlass", SliceKind::kMatmul},
                              Part{"matmul", SliceKind::kMatmul},
                              Part{"nvjet", SliceKind::kMatmul},
                              Part{"xmma", SliceKind::kMatmul},
                              Part{"norm", SliceKind::kNormalization},
                              Part{"softmax", SliceKind::kNormalization},
                              Part{"reduce", SliceKind::kNormalization},
                              Part{"elementwise", SliceKind::kElementwise},
                              Part{"pointwise", SliceKind::kElementwise},
                              Part{"triton_poi", SliceKind::kElementwise}};
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const Part& part : kParts)
    if (lower.find(part.text) != std::string::npos) return part.family;
  return SliceKind::kKernel;
}

}  // namespace meshwright::gui
