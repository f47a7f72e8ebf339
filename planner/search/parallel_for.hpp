/// Parallel loop over independent items.
#pragma once

#include <cstddef>
#include <functional>

namespace meshwright {

/// Number of threads: `asked`, or one per core if it is 0.
int thread_count(int asked);

/// Calls body(i) once for every i < count from up to `threads` threads, fewer if the system permits
/// no more, in any order, and returns after the last call. If calls throw, no further items are
/// started, and the exception of the smallest i is rethrown. body must only write data of item i.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

}  // namespace meshwright
