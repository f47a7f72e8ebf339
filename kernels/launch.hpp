/// Calling convention of all kernels.
///
/// A kernel is a pair of functions over one struct of arguments: `run` does the work, `scratch`
/// returns the size of the working memory it needs (for the same shapes; data pointers may be
/// null). Kernels have no state that affects results, start no threads and allocate no memory,
/// except for the reference kernels and the libraries behind matrix products.
/// Pointers refer to memory of the back end (device memory for a GPU) unless a field is marked
/// "host"; the caller copies results to the host.
#pragma once

#include "core/base/check.hpp"
#include "core/base/units.hpp"

namespace meshwright {

/// Stream and working memory of a kernel call.
struct Launch {
  void* stream = nullptr;   ///< GPU stream: run() returns before the work is done; else unused
  void* scratch = nullptr;  ///< working memory, aligned to 64 bytes, contents undefined
  Bytes scratch_size = {};
};

template <class Arguments>
struct KernelEntry {
  void (*run)(const Launch&, const Arguments&) = nullptr;
  Bytes (*scratch)(const Arguments&) = nullptr;  ///< null: never needs any

  /// Shapes must agree, storage must be fp32 or bf16, and no view may be null; that is checked
  /// here, by the check() next to the arguments. A violation is a bug of the caller (MW_CHECK).
  void operator()(const Launch& launch, const Arguments& arguments) const {
    check(arguments);
    run(launch, arguments);
  }
  Bytes scratch_bytes(const Arguments& arguments) const {
    return scratch == nullptr ? Bytes(0) : scratch(arguments);
  }
};

}  // namespace meshwright
