/// Integer arithmetic for checks and error messages.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace meshwright {

/// Product that saturates at the largest value instead of overflowing, for user input.
std::int64_t saturating_product(std::initializer_list<std::int64_t> factors);

/// In ascending order; empty for numbers below 1. Takes milliseconds for any number: a pair of
/// divisors that are both above 2^20 is left out.
std::vector<std::int64_t> divisors(std::int64_t number);
/// "1, 2, 4, 8": the smallest divisors of `number` up to `largest`, at most 16.
std::string divisors_up_to(std::int64_t number, std::int64_t largest);

}  // namespace meshwright
