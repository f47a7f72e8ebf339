#include "cli/table.hpp"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

TEST(Table, AlignsColumnsToTheirWidestCell) {
  const Table table{.columns = {{"name", Align::kLeft}, {"size"}},
                    .rows = {{"a", "1"}, {"longer", "12345"}}};
  EXPECT_EQ(to_text(table),
            "name     size\n"
            "a           1\n"
            "longer  12345\n");
}

TEST(Table, CountsCharactersAndNotBytes) {
  const Table table{.columns = {{"µs", Align::kLeft}, {"x"}}, .rows = {{"ab", "1"}}};
  EXPECT_EQ(to_text(table), "µs  x\nab  1\n");
}

TEST(Table, LeavesNoTrailingSpaces) {
  const Table table{.columns = {{"a"}, {"note", Align::kLeft}}, .rows = {{"1", ""}}};
  EXPECT_EQ(to_text(table), "a  note\n1\n");
}

}  // namespace
}  // namespace meshwright
