/// What the reports of `partition` have in common.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

namespace meshwright {

using Json = nlohmann::ordered_json;

/// "3 nodes", "1 node", "2 batches"
inline std::string count_text(std::size_t count, const char* noun, const char* plural = "s") {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : plural);
}

/// Names that are not UTF-8 are written with replacement characters.
inline std::string json_text(const Json& json) {
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

inline std::string infeasible_json(const std::string& reason) {
  return json_text(Json{{"schema", 1},
                        {"stages", Json::array()},
                        {"infeasible", {{"reason", reason}, {"nearest", nullptr}}}});
}

}  // namespace meshwright
