#include "cli/terminal/table.hpp"

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

TEST(Table, IndentsEveryLine) {
  const Table table{.columns = {{"a"}, {"b"}}, .rows = {{"1", "2"}}};
  EXPECT_EQ(to_indented_text(table), "  a  b\n  1  2\n");
}

TEST(Table, TakesColumnsOfATableWithAsManyRows) {
  Table table;  // without columns
  append_columns(table, {.columns = {{"a"}}, .rows = {{"1"}, {"2"}}});
  append_columns(table, {});
  append_columns(table, {.columns = {{"b"}}, .rows = {{"3"}, {"4"}}});
  EXPECT_EQ(to_text(table), "a  b\n1  3\n2  4\n");
}

TEST(NamedValues, StartTwoSpacesAfterTheLongestName) {
  const std::vector<NamedValue> list{{"memory", "80 GiB"}, {"devices.h100.memory_efficiency", "x"}};
  EXPECT_EQ(to_text(list),
            "  memory                          80 GiB\n"
            "  devices.h100.memory_efficiency  x\n");
  EXPECT_EQ(to_text(std::vector<NamedValue>{}), "");
}

TEST(Table, IsAlsoMarkdown) {
  const Table table{.columns = {{"set", Align::kLeft}, {"runs"}}, .rows = {{"a", "3"}}};
  EXPECT_EQ(to_markdown(table), "| set | runs |\n|---|---:|\n| a | 3 |\n");
}

TEST(Table, IsAlsoHtml) {
  const Table table{.columns = {{"set", Align::kLeft}, {"runs"}}, .rows = {{"a<b & \"c\"", "3"}}};
  EXPECT_EQ(to_html(table),
            "<table>\n<tr><th class=\"left\">set</th><th>runs</th></tr>\n"
            "<tr><td class=\"left\">a&lt;b &amp; &quot;c&quot;</td><td>3</td></tr>\n</table>\n");
}

}  // namespace
}  // namespace meshwright
