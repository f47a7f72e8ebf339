/// The reference kernels: plain loops that read like the formulas in the headers, with sums in
/// double. Internal to this folder.
#pragma once

#include "kernels/kernel_table.hpp"

namespace meshwright::reference {

MESHWRIGHT_KERNELS(MESHWRIGHT_DECLARE_RUN)

}  // namespace meshwright::reference
