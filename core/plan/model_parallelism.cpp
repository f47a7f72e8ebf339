#include "core/plan/model_parallelism.hpp"

#include <algorithm>

namespace meshwright {
namespace {
constexpr std::array<std::string_view, kContextAlgorithmCount> kContextNames{"all-gather", "ring",
                                                                             "all-to-all"};
}  // namespace

std::string_view name_of(ContextAlgorithm algorithm) {
  return kContextNames[static_cast<std::size_t>(algorithm)];
}

std::optional<ContextAlgorithm> context_algorithm_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kContextNames.size(); ++i)
    if (kContextNames[i] == name) return static_cast<ContextAlgorithm>(i);
  return std::nullopt;
}

std::string to_text(const RankOrder& order) {
  std::string text;
  for (const Axis axis : order.axes) {
    if (!text.empty()) text += '-';
    text += name_of(axis);
  }
  return text;
}

std::optional<RankOrder> rank_order_from_text(std::string_view text) {
  RankOrder order;
  std::array<bool, kAxisCount> seen{};
  for (int place = 0; place < kAxisCount; ++place) {
    const bool is_last = place + 1 == kAxisCount;
    const std::size_t end = is_last ? text.size() : text.find('-');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view word = text.substr(0, end);
    int axis = 0;
    while (axis < kAxisCount && name_of(static_cast<Axis>(axis)) != word) ++axis;
    if (axis == kAxisCount || seen[static_cast<std::size_t>(axis)]) return std::nullopt;
    seen[static_cast<std::size_t>(axis)] = true;
    order.axes[static_cast<std::size_t>(place)] = static_cast<Axis>(axis);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return order;
}

}  // namespace meshwright
