/// $(( … )) of shell scripts: whole numbers, variables, + - * / % and parentheses.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// Empty if the text is something else, a variable is not set, or a result exceeds 10^15.
std::optional<std::int64_t> evaluate_arithmetic(
    std::string_view text, const std::map<std::string, std::vector<std::string>>& variables);

}  // namespace meshwright
