/// The table of the reference kernels. Internal to this folder.
#pragma once

#include "kernels/kernel_table.hpp"

namespace meshwright {

KernelTable reference_table();

}  // namespace meshwright
