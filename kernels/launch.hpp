/// How every kernel is called.
///
/// A kernel is a pair of functions over one struct of arguments: `run` does the work, `scratch`
/// says how much working memory that takes (asked with the same shapes; data pointers may be null).
/// Kernels keep no state that a result depends on and start no threads; but for the reference and
/// for libraries behind products, they allocate nothing.
/// Pointers lie in the memory of the back end (device memory for a GPU) unless a field is marked
/// "host"; results meant for the host are copied there by the caller.
#pragma once

#include "core/check.hpp"
#include "core/units.hpp"

namespace meshwright {

/// Where and with what a kernel runs.
struct Launch {
  void* stream = nullptr;   ///< a GPU's stream: run() returns before the work is done; else unused
  void* scratch = nullptr;  ///< working memory, aligned to 64 bytes; contents do not matter
  Bytes scratch_size = {};
};

template <class Arguments>
struct KernelEntry {
  void (*run)(const Launch&, const Arguments&) = nullptr;
  Bytes (*scratch)(const Arguments&) = nullptr;  ///< null: none is ever needed

  void operator()(const Launch& launch, const Arguments& arguments) const {
    run(launch, arguments);
  }
  Bytes scratch_bytes(const Arguments& arguments) const {
    return scratch == nullptr ? Bytes(0) : scratch(arguments);
  }
};

}  // namespace meshwright
