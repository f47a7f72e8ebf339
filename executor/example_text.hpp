/// A text to learn from where none is given.
#pragma once

#include <string_view>

namespace meshwright {

/// Lincoln's address at Gettysburg and Shakespeare's sonnets 18, 29 and 116: in the public domain.
std::string_view example_text();

}  // namespace meshwright
