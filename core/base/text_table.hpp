/// Many short texts in one buffer, without an allocation for each.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

class TextTable {
 public:
  using value_type = std::string_view;
  TextTable() = default;
  TextTable(std::initializer_list<std::string_view> texts) {
    for (const std::string_view text : texts) push_back(text);
  }

  std::size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }
  /// Valid until the table changes.
  std::string_view operator[](std::size_t index) const {
    const Place& place = places_[index];
    return std::string_view(buffer_).substr(place.begin, place.size);
  }

  /// For a walk in another order than that of the texts: first where a text is, then the text.
  void prefetch_place(std::size_t index) const { __builtin_prefetch(&places_[index]); }
  void prefetch_text(std::size_t index) const {
    __builtin_prefetch(buffer_.data() + places_[index].begin);
  }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;
    Iterator(const TextTable& table, std::size_t index) : table_(&table), index_(index) {}
    std::string_view operator*() const { return (*table_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) { return {*table_, index_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const TextTable* table_;
    std::size_t index_;
  };
  using iterator = Iterator;
  using const_iterator = Iterator;
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  void reserve(std::size_t texts, std::size_t bytes) {
    places_.reserve(texts);
    buffer_.reserve(bytes);
  }
  /// New texts are empty.
  void resize(std::size_t texts) { places_.resize(texts); }
  void push_back(std::string_view text) {
    places_.emplace_back();
    set(places_.size() - 1, text);
  }
  /// The memory of the former text is not freed.
  void set(std::size_t index, std::string_view text) {
    places_[index] = {.begin = buffer_.size(), .size = text.size()};
    buffer_.append(text);
  }

  friend bool operator==(const TextTable& a, const TextTable& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i] != b[i]) return false;
    return true;
  }

 private:
  struct Place {
    std::size_t begin = 0, size = 0;
  };
  std::string buffer_;
  std::vector<Place> places_;
};

}  // namespace meshwright
