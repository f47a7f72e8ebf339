#include "gui/timeline/kinds.hpp"

#include <array>

namespace meshwright::gui {

std::string_view name_of(SliceKind kind) {
  if (static_cast<int>(kind) < kTaskKindCount)
    return meshwright::name_of(static_cast<TaskKind>(kind));
  constexpr std::array<std::string_view, kSliceKindCount - kTaskKindCount> kMeasuredOnly{
      "recompute", "copy", "kernel", "host"};
  return kMeasuredOnly[static_cast<std::size_t>(kind) - kTaskKindCount];
}

}  // namespace meshwright::gui
