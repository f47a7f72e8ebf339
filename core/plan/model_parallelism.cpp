#include "core/plan/model_parallelism.hpp"

#include <algorithm>

#include "core/base/value_named.hpp"

namespace meshwright {
namespace {
constexpr std::array<std::string_view, kContextAlgorithmCount> kContextNames{"all-gather", "ring",
                                                                             "all-to-all"};
}  // namespace

std::string_view name_of(ContextAlgorithm algorithm) {
  return kContextNames[static_cast<std::size_t>(algorithm)];
}

std::optional<ContextAlgorithm> context_algorithm_from_name(std::string_view name) {
  return value_named<ContextAlgorithm>(name, kContextAlgorithmCount);
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
    const auto axis = value_named<Axis>(word, kAxisCount);
    if (!axis || seen[static_cast<std::size_t>(*axis)]) return std::nullopt;
    seen[static_cast<std::size_t>(*axis)] = true;
    order.axes[static_cast<std::size_t>(place)] = *axis;
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return order;
}

}  // namespace meshwright
