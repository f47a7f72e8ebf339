#include "cli/job/launch_outcome.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace meshwright {

Outcome launch_outcome(std::string_view program, const LaunchText& launch,
                       const OutputFlags& flags) {
  if (flags.json) {
    const nlohmann::ordered_json object{{"schema", 1},
                                        {"target", program},
                                        {"text", launch.text},
                                        {"not_said", launch.unsupported}};
    constexpr int kIndent = 2;
    return deliver(
        object.dump(kIndent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n",
        flags);
  }
  Outcome outcome = deliver(launch.text, flags);
  for (const std::string& one : launch.unsupported)
    outcome.notes += fmt::format("warning: not expressible in {}: {}\n", program, one);
  return outcome;
}

}  // namespace meshwright
