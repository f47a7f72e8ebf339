/// Where a field of a plan was written, for diagnostics.
#pragma once

#include <string>
#include <string_view>

namespace meshwright {

/// `field` is a flag without leading dashes, or "orders". `where` is "--" for the flag, or the
/// prefix of JSON pointers into the plan file: "x.plan.json#/" gives "x.plan.json#/strategy/tp".
std::string place_of_field(std::string_view where, std::string_view field);

}  // namespace meshwright
