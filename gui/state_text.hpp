/// A scenario as one line that can be mailed, pasted back, or run: the command line of
/// `meshwright simulate` with what only the desktop program knows behind a '#'.
///
///   meshwright simulate --model gpt2 --cluster dgx-a100 --tp 1 --pp 4 … # tF=10ms tB=10ms
///   slow=1,2,1,1
#pragma once

#include <string>
#include <string_view>

#include "gui/scenario.hpp"

namespace meshwright::gui {

/// Only what differs from its default. Orders by hand are left out: they are a file of their own.
std::string to_state_text(const Scenario& scenario);

/// Inverse of to_state_text(). InputError names the word that is wrong.
Scenario scenario_from_state_text(std::string_view text);

}  // namespace meshwright::gui
