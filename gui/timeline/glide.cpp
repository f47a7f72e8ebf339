#include "gui/timeline/glide.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

namespace meshwright::gui {
namespace {

struct Place {
  std::int32_t stage = -1;
  SliceKind kind = SliceKind::kForward;
  std::uint16_t microbatch = kNoMicrobatch;
  std::int32_t rank = -1;
  float left = 0, right = 0;

  auto work() const { return std::tuple(stage, kind, microbatch); }
};

/// Passes sorted by work(); nullopt if there are too many.
std::optional<std::vector<Place>> places_of(const TimelineTracks& tracks,
                                            const TimeWindow& window) {
  std::vector<Place> places;
  for (std::size_t row = 0; row < tracks.rows.size(); ++row) {
    if (!tracks.rows[row].is_compute || tracks.rows[row].replica > 0) continue;
    for (std::size_t s = tracks.row_begin[row]; s < tracks.row_begin[row + 1]; ++s) {
      if (!is_pass(tracks.kind[s])) continue;
      if (places.size() == kMostGliding) return std::nullopt;
      places.push_back({.stage = tracks.label_of(s).stage,
                        .kind = tracks.kind[s],
                        .microbatch = tracks.microbatch[s],
                        .rank = tracks.rows[row].rank,
                        .left = static_cast<float>(window.pixel_of(tracks.start_of(s))),
                        .right = static_cast<float>(window.pixel_of(tracks.end_of(s)))});
    }
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.work() < b.work(); });
  return places;
}

float middle_of(const Place& place) { return (place.left + place.right) / 2; }

GlidingSlice ending(const Place& a) {
  return {a.rank, a.rank, a.kind, a.left, a.right, middle_of(a), middle_of(a)};
}

GlidingSlice beginning(const Place& b) {
  return {b.rank, b.rank, b.kind, middle_of(b), middle_of(b), b.left, b.right};
}

}  // namespace

std::vector<GlidingSlice> gliding_slices(const TimelineTracks& before,
                                         const TimeWindow& window_before,
                                         const TimelineTracks& after,
                                         const TimeWindow& window_after) {
  const auto from = places_of(before, window_before), to = places_of(after, window_after);
  std::vector<GlidingSlice> gliding;
  if (!from || !to) return gliding;
  gliding.reserve(std::max(from->size(), to->size()));
  auto a = from->begin(), b = to->begin();
  while (a != from->end() || b != to->end()) {
    if (b == to->end() || (a != from->end() && a->work() < b->work())) {
      gliding.push_back(ending(*a++));
    } else if (a == from->end() || b->work() < a->work()) {
      gliding.push_back(beginning(*b++));
    } else {
      gliding.push_back({a->rank, b->rank, b->kind, a->left, a->right, b->left, b->right});
      ++a, ++b;
    }
  }
  return gliding;
}

double eased(double share) {
  const double left = 1 - std::clamp(share, 0.0, 1.0);
  return 1 - left * left * left;
}

}  // namespace meshwright::gui
