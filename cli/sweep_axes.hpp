/// `--over FLAG=V1,V2,…`: the strategy flags that a sweep varies. Each value is parsed as the flag
/// itself would be, so that whatever a command takes can be swept.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/strategy_flags.hpp"

namespace meshwright {

struct SweptFlag {
  std::string flag;  ///< "--pp"
  std::vector<std::string> values;
};

/// "pp=1,2,4" or "--pp=1,2,4". Throws UsageError.
SweptFlag swept_flag_from_text(const std::string& text);

/// The product of all values.
inline constexpr std::size_t kMostSweepPoints = 100'000;

struct SweptStrategy {
  std::vector<std::size_t> value_of_flag;  ///< by flag: index into its values
  StrategyFlags flags;
};

/// `base` with every combination, the last flag varying fastest. Throws UsageError for an unknown
/// flag, a flag that stands twice or is in `base` already, a value that the flag does not take, or
/// more than kMostSweepPoints combinations.
std::vector<SweptStrategy> combinations(const StrategyFlags& base,
                                        std::span<const SweptFlag> swept);

}  // namespace meshwright
