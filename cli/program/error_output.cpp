#include "cli/program/error_output.hpp"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/flags/output_flags.hpp"
#include "cli/terminal/standard_streams.hpp"
#include "core/formats/file.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(std::string_view kind, const Diagnostic& d) {
  return {{"kind", kind}, {"where", d.where}, {"what", d.what}, {"hint", d.hint}};
}

void print_json_errors(const Json& all) {
  const Json json{{"schema", 1}, {"error", all.front()}, {"errors", all}};
  try {
    write_file("-", json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  } catch (const RuntimeFailure& failure) {
    print_to_stderr(format(failure.diagnostic()));
  }
}

}  // namespace

void end_at_once(int exit_code) {
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

int report_errors(std::string_view kind, std::span<const Diagnostic> diagnostics, bool json,
                  int exit_code) {
  Json all = Json::array();
  for (const Diagnostic& d : diagnostics) {
    print_to_stderr(format(d));
    all.push_back(json_of(kind, d));
  }
  if (json) print_json_errors(all);
  return exit_code;
}

int report_error(std::string_view kind, const Diagnostic& diagnostic, bool json, int exit_code) {
  return report_errors(kind, std::span(&diagnostic, 1), json, exit_code);
}

int report_failed_run(const RunFailed& error, bool json) {
  const RunFailed::What& what = error.details();
  print_to_stderr(format(error.diagnostic()));
  if (json) {
    Json failure = json_of("run", error.diagnostic());
    failure["rank"] = what.rank.value;
    failure["task"] = what.task.empty() ? Json() : Json(what.task);
    print_json_errors(Json::array({failure}));
  }
  if (what.leaves_a_thread) end_at_once(what.exit_code);
  return what.exit_code;
}

}  // namespace meshwright
