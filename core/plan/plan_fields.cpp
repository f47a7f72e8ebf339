#include "core/plan/plan_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {
namespace {

constexpr std::string_view kFlags = "--";

/// The key of a field in the plan file as JSON pointer without the leading slash; see
/// core/formats/plan_write.cpp for the layout.
std::string key_of(std::string_view field) {
  if (field == "stage-devices") return "device_of_stage";
  if (field == "fsdp-no-reshard") return "strategy/fsdp_reshard";
  std::string key(field);
  std::replace(key.begin(), key.end(), '-', '_');
  return field == "blocks-per-stage" || field == "orders" ? key : "strategy/" + key;
}

}  // namespace

std::string place_of_field(std::string_view where, std::string_view field) {
  if (where != kFlags) return fmt::format("{}{}", where, key_of(field));
  // Synthesized orders have no flag of their own.
  return fmt::format("{}{}", kFlags, field == "orders" ? "schedule" : field);
}

}  // namespace meshwright
