/// Slice kinds, as distinguished by drawing and statistics.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/units.hpp"
#include "core/graph/task_graph.hpp"

namespace meshwright::gui {

using Nanoseconds = Quantity<struct NanosecondDimension, std::int64_t>;

/// The task kinds, followed by kinds that occur in measured traces only.
enum class SliceKind : std::uint8_t {
  kForward,
  kBackward,
  kBackwardInput,
  kBackwardWeight,
  kOptimizer,
  kCollective,
  kSend,
  kReceive,
  kRecompute,
  kCopy,    ///< memory copies and sets
  kKernel,  ///< device work of an unknown pass and family
  kMatmul,  ///< kernels of a family, as told by their names
  kAttention,
  kNormalization,  ///< norms, softmax and other reductions
  kElementwise,
  kHost  ///< CPU work
};
inline constexpr int kSliceKindCount = 16;

/// "F", "B", "I", "W", "optimizer", "collective", …
std::string_view name_of(SliceKind kind);
constexpr SliceKind slice_kind_of(TaskKind kind) { return static_cast<SliceKind>(kind); }
static_assert(slice_kind_of(TaskKind::kReceive) == SliceKind::kReceive);
constexpr bool is_pass(SliceKind kind) { return kind <= SliceKind::kBackwardWeight; }
constexpr bool is_communication(SliceKind kind) {
  return kind == SliceKind::kCollective || kind == SliceKind::kSend || kind == SliceKind::kReceive;
}
constexpr bool is_kernel(SliceKind kind) {
  return kind >= SliceKind::kKernel && kind <= SliceKind::kElementwise;
}
/// The family of a compute kernel by its name: "ampere_sgemm_128x64_tn" is a matmul.
SliceKind kernel_family(std::string_view name);

/// Rounds down to whole nanoseconds.
constexpr Nanoseconds floor_nanoseconds(Ticks time) {
  const std::int64_t whole = time.value / kTicksPerNanosecond;
  return Nanoseconds(time.value % kTicksPerNanosecond < 0 ? whole - 1 : whole);
}

}  // namespace meshwright::gui
