/// One member of each of several structs.
#pragma once

#include <vector>

namespace meshwright {

template <class Item, class Value>
std::vector<Value> values_of(const std::vector<Item>& items, Value Item::*member) {
  std::vector<Value> values;
  for (const Item& item : items) values.push_back(item.*member);
  return values;
}

}  // namespace meshwright
