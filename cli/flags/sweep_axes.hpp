/// `--over FLAG=V1,V2,…`: the strategy flags varied by a sweep. Values are parsed exactly as for
/// the flag itself.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/flags/strategy_flags.hpp"

namespace meshwright {

struct SweptFlag {
  std::string flag;  ///< "--pp"
  std::vector<std::string> values;
};

/// "pp=1,2,4" or "--pp=1,2,4". Throws UsageError.
SweptFlag swept_flag_from_text(const std::string& text);

/// Limit on the number of combinations.
inline constexpr std::size_t kMostSweepPoints = 100'000;

struct SweptStrategy {
  std::vector<std::size_t> value_of_flag;  ///< for each flag, index into its values
  StrategyFlags flags;
};

/// All combinations applied to `base`, the last flag varying fastest. Throws UsageError for an
/// unknown or duplicate flag, an invalid value, or more than kMostSweepPoints combinations.
std::vector<SweptStrategy> combinations(const StrategyFlags& base,
                                        std::span<const SweptFlag> swept);

}  // namespace meshwright
