/// Events by time: a heap with four children per element, which moves less than one with two.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace meshwright {

/// `Event` has an operator< that says which one comes first.
template <class Event>
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  const Event& first() const { return heap_.front(); }

  void push(const Event& event) {
    std::size_t place = heap_.size();
    heap_.push_back(event);
    for (; place > 0 && event < heap_[parent_of(place)]; place = parent_of(place))
      heap_[place] = heap_[parent_of(place)];
    heap_[place] = event;
  }

  Event pop() {
    const Event first = heap_.front(), last = heap_.back();
    heap_.pop_back();
    const std::size_t count = heap_.size();
    std::size_t place = 0;
    for (std::size_t child; (child = kChildren * place + 1) < count;) {
      const std::size_t end = std::min(child + kChildren, count);
      std::size_t least = child;
      while (++child < end) least = heap_[child] < heap_[least] ? child : least;
      if (!(heap_[least] < last)) break;
      heap_[place] = heap_[least];
      place = least;
    }
    if (count > 0) heap_[place] = last;
    return first;
  }

 private:
  static constexpr std::size_t kChildren = 4;
  static std::size_t parent_of(std::size_t place) { return (place - 1) / kChildren; }
  std::vector<Event> heap_;
};

}  // namespace meshwright
