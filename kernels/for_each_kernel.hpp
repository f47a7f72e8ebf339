/// Visitor over the list of all kernels. Internal to this folder and its tests.
#pragma once

#include "kernels/kernel_table.hpp"

namespace meshwright {

/// A row of the list as a type.
template <class A, KernelEntry<A> KernelTable::*kEntry>
struct KernelRow {
  static_assert(
      requires(const A& a) { check(a); }, "define check() next to the arguments");
  using Arguments = A;
  static constexpr KernelEntry<A> KernelTable::*entry = kEntry;
  const char* name;
};

/// Calls visit(row) for every kernel: table.*row.entry is its entry.
template <class Visit>
void for_each_kernel(const Visit& visit) {
#define MESHWRIGHT_VISIT(name, Arguments) visit(KernelRow<Arguments, &KernelTable::name>{#name});
  MESHWRIGHT_KERNELS(MESHWRIGHT_VISIT)
#undef MESHWRIGHT_VISIT
}

/// The table whose entries are entry_of(row).
template <class EntryOf>
KernelTable make_table(Backend backend, const EntryOf& entry_of) {
  KernelTable table;
  table.backend = backend;
  for_each_kernel([&](auto row) { table.*row.entry = entry_of(row); });
  return table;
}

}  // namespace meshwright
