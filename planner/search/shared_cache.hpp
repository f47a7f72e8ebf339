/// A cache that several threads fill.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

namespace meshwright {

/// Values are pure functions of their keys, so it does not matter which thread computes one. Keys
/// of types of our own have a hash_value() in their namespace.
template <class Key, class Value>
class SharedCache {
 public:
  /// The value of `key`; make() computes it if it is not known.
  template <class Make>
  std::shared_ptr<const Value> get(const Key& key, const Make& make) {
    {
      const std::shared_lock lock(mutex_);
      if (const auto known = values_.find(key); known != values_.end()) return known->second;
    }
    auto value = std::make_shared<const Value>(make());
    const std::lock_guard lock(mutex_);
    return values_.try_emplace(key, std::move(value)).first->second;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const Value>, boost::hash<Key>> values_;
};

}  // namespace meshwright
