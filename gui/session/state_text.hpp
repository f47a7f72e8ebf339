/// A scenario as one line for sharing, pasting or running: a `meshwright simulate` command line,
/// with the parameters that only the desktop program supports after a '#'.
///
///   meshwright simulate --model gpt2 --cluster dgx-a100 --tp 1 --pp 4 … # tF=10ms tB=10ms
///   slow=1,2,1,1
#pragma once

#include <string>
#include <string_view>

#include "gui/session/scenario.hpp"

namespace meshwright::gui {

/// Contains non-default values only. Manual orders are omitted: they need a schedule file.
std::string to_state_text(const Scenario& scenario);

/// Inverse of to_state_text(). Throws InputError with the invalid word.
Scenario scenario_from_state_text(std::string_view text);

}  // namespace meshwright::gui
