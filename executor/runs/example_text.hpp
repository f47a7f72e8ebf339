/// The training text used when none is given.
#pragma once

#include <string_view>

namespace meshwright {

/// Lincoln's Gettysburg Address and Shakespeare's sonnets 18, 29 and 116 (public domain).
std::string_view example_text();

}  // namespace meshwright
