/// Integer arithmetic for checks and error messages.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace meshwright {

/// Product that saturates at the largest value instead of overflowing, for user input.
std::int64_t saturating_product(std::initializer_list<std::int64_t> factors);

/// "1, 2, 4, 8": the smallest divisors of `number` up to `largest`, at most 16. In milliseconds,
/// for user input: two factors that are both above a million are not found.
std::string divisors_up_to(std::int64_t number, std::int64_t largest);

}  // namespace meshwright
