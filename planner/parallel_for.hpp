/// Independent items over threads.
#pragma once

#include <cstddef>
#include <functional>

namespace meshwright {

/// Threads to use where `asked` is what the user said; 0: one per core.
int thread_count(int asked);

/// Calls body(i) once for every i < count, from up to `threads` threads, in no order; returns when
/// all have ended. What body throws is thrown again here (the first of them by i), and no further
/// item is begun. body must write only to what belongs to i.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

}  // namespace meshwright
