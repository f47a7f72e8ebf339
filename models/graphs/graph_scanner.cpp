#include "models/graphs/graph_scanner.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/base/error.hpp"
#include "core/base/number_from_text.hpp"

namespace meshwright {

std::string GraphScanner::place(const char* list, std::size_t index) const {
  return fmt::format("{}#/{}/{}", file.where, list, index);
}

void GraphScanner::refuse(const std::string& what, const char* hint) const {
  throw InputError({fmt::format("{}: byte {}", file.where, scanner.position()), what, hint});
}

double GraphScanner::number() {
  const std::string_view text = scanner.number();
  const auto value = number_from_text<double>(text);
  if (!value || !std::isfinite(*value) || *value < 0)
    scanner.fail(fmt::format("expected a number of at least 0, got {}", text));
  return *value;
}

std::int64_t GraphScanner::whole() {
  constexpr double kLargest = 1e15;  // exact in double precision
  const std::string_view text = scanner.number();
  const auto value = number_from_text<double>(text);
  if (!value || std::abs(*value) > kLargest || *value != std::floor(*value))
    scanner.fail(fmt::format("expected a whole number, got {}", text));
  return static_cast<std::int64_t>(*value);
}

int GraphScanner::count(const char* key, int smallest, int largest) {
  const std::int64_t value = whole();
  if (value < smallest || value > largest)
    throw InputError({fmt::format("{}#/{}", file.where, key),
                      fmt::format("expected {} to {}, got {}", smallest, largest, value),
                      fmt::format("set '{}' to a value in this range", key)});
  return static_cast<int>(value);
}

NodeIds::NodeIds(const std::vector<std::int64_t>& ids, const GraphScanner& graph) : graph_(graph) {
  for (std::size_t v = 0; v < ids.size(); ++v)
    if (!index_.emplace(ids[v], static_cast<std::int32_t>(v)).second)
      throw InputError({graph.place("nodes", v), fmt::format("id {} is used twice", ids[v]),
                        "give every node its own id"});
}

NodeIds::Ends NodeIds::ends(std::int64_t source, std::int64_t target, std::size_t edge) const {
  const auto from = index_.find(source), to = index_.find(target);
  if (from == index_.end() || to == index_.end())
    throw InputError(
        {graph_.place("edges", edge),
         fmt::format("edge from node {} to node {}, one of which does not exist", source, target),
         "refer to the ids of nodes"});
  return {.source = from->second, .target = to->second};
}

}  // namespace meshwright
