#include "gui/timeline/box_label.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::gui {
namespace {

/// Small digits may use a pixel of the free sides of a box.
constexpr int kSmallDigitsMore = 1;

bool has_number(const TimelineTracks& tracks, std::size_t slice) {
  return is_pass(tracks.kind[slice]) && tracks.microbatch[slice] != kNoMicrobatch;
}

/// "ampere_sgemm_128x64_tn" becomes "ampere_sg.."; empty if less than a few letters are left.
std::string shortened(std::string name, int room, const TextWidth& width_of) {
  constexpr std::size_t kFewestLetters = 4;
  const std::string dots = "..";
  while (name.size() > kFewestLetters) {
    name.pop_back();
    if (width_of(name + dots, false) <= room) return name + dots;
  }
  return {};
}

}  // namespace

bool kinds_fit(const TimelineTracks& tracks, const std::vector<SliceBox>& boxes, double width,
               const TextWidth& width_of) {
  return std::all_of(boxes.begin(), boxes.end(), [&](const SliceBox& box) {
    const bool is_cut = box.left < 0 || box.right > width;
    return is_cut || !has_number(tracks, box.slice) ||
           width_of(short_name(tracks, box.slice), false) <= label_room(box.left, box.right);
  });
}

BoxLabel box_label(const TimelineTracks& tracks, std::size_t slice, int room, bool with_kind,
                   const TextWidth& width_of) {
  const std::string name = short_name(tracks, slice);
  const bool is_numbered = has_number(tracks, slice);
  if ((with_kind || !is_numbered) && width_of(name, false) <= room) return {name, false};
  if (is_numbered) {
    const std::string digits = fmt::format("{}", tracks.microbatch[slice]);
    if (width_of(digits, false) <= room) return {digits, false};
    if (width_of(digits, true) <= room + kSmallDigitsMore) return {digits, true};
    return {};
  }
  const SliceKind kind = tracks.kind[slice];
  const bool is_of_trace = is_kernel(kind) || kind == SliceKind::kHost || kind == SliceKind::kCopy;
  return {is_of_trace ? shortened(name, room, width_of) : std::string(), false};
}

}  // namespace meshwright::gui
