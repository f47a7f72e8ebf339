#include "cli/terminal/document.hpp"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

/// A title, a table, a list and a remark.
Document example() {
  Document document = "Plans\n\n";
  document += Table{.columns = {{"plan", Align::kLeft}, {"step"}}, .rows = {{"TP2", "1.5 s"}}};
  document += "\nPlan 1:\n";
  document += std::vector<NamedValue>{{"memory", "80 GiB"}, {"  free", "2 GiB"}};
  document += "It fits.\n";
  return document;
}

TEST(Document, IsTextWithoutChanges) {
  EXPECT_EQ(to_text(example()),
            "Plans\n\n"
            "plan   step\n"
            "TP2   1.5 s\n"
            "\nPlan 1:\n"
            "  memory  80 GiB\n"
            "    free  2 GiB\n"
            "It fits.\n");
}

TEST(Document, JoinsTextsAndLeavesOutEmptyOnes) {
  Document document = "a";
  document += "";
  document += "b" + Document("c");
  ASSERT_EQ(document.blocks().size(), 1u);
  EXPECT_EQ(to_text(document), "abc");
  EXPECT_TRUE(Document("").blocks().empty());
}

TEST(Document, IndentsTablesInTextOnly) {
  const Document document = indented({.columns = {{"a"}}, .rows = {{"1"}}});
  EXPECT_EQ(to_text(document), "  a\n  1\n");
  EXPECT_EQ(to_csv(document), "a\r\n1\r\n");
  EXPECT_EQ(to_markdown(document), "| a |\n|---:|\n| 1 |\n");
}

TEST(Markdown, HasParagraphsAndTables) {
  EXPECT_EQ(to_markdown(example()),
            "Plans\n"
            "\n"
            "| plan | step |\n"
            "|---|---:|\n"
            "| TP2 | 1.5 s |\n"
            "\n"
            "Plan 1:\n"
            "\n"
            "| name | value |\n"
            "|---|---|\n"
            "| memory | 80 GiB |\n"
            "| free | 2 GiB |\n"
            "\n"
            "It fits.\n");
}

TEST(Markdown, EscapesWhatWouldBeMarkup) {
  const Table table{.columns = {{"a|b", Align::kLeft}},
                    .rows = {{"x | y"}, {"<b> & `c`"}, {"two\nlines"}, {"a\\"}}};
  EXPECT_EQ(to_markdown(table),
            "| a\\|b |\n"
            "|---|\n"
            "| x \\| y |\n"
            "| \\<b> \\& \\`c\\` |\n"
            "| two lines |\n"
            "| a\\\\ |\n");
  EXPECT_EQ(to_markdown(Document("*: best\n  # not a title\n1. not a list\n- nor here\n\nnext\n")),
            "\\*: best\\\n"
            "\\# not a title\\\n"
            "1\\. not a list\\\n"
            "\\- nor here\n"
            "\n"
            "next\n");
}

// RFC 4180: CR LF ends lines, quotes enclose cells with commas, quotes or line breaks, and a quote
// inside of quotes is doubled.
TEST(Csv, FollowsRfc4180) {
  const Table table{.columns = {{"name", Align::kLeft}, {"tokens"}},
                    .rows = {{"plain", "1"},
                             {"a,b", "1,234"},
                             {"say \"hi\"", ""},
                             {"two\nlines", "4"},
                             {"cr\r", "5"}}};
  EXPECT_EQ(to_csv(table),
            "name,tokens\r\n"
            "plain,1\r\n"
            "\"a,b\",\"1,234\"\r\n"
            "\"say \"\"hi\"\"\",\r\n"
            "\"two\nlines\",4\r\n"
            "\"cr\r\",5\r\n");
}

TEST(Csv, SeparatesTablesByEmptyLinesAndLeavesOutTexts) {
  EXPECT_EQ(to_csv(example()),
            "plan,step\r\n"
            "TP2,1.5 s\r\n"
            "\r\n"
            "name,value\r\n"
            "memory,80 GiB\r\n"
            "free,2 GiB\r\n");
  EXPECT_EQ(texts_of(example()), "Plans\n\n\nPlan 1:\nIt fits.\n");
}

TEST(Html, IsAPageOfItsOwn) {
  const std::string page = to_html_page(example(), "a < b");
  EXPECT_EQ(page.find("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                      "<title>a &lt; b</title>\n<style>\n"),
            0u);
  EXPECT_EQ(page.substr(page.find("<body>")),
            "<body>\n"
            "<p>Plans</p>\n"
            "<table>\n<tr><th class=\"left\">plan</th><th>step</th></tr>\n"
            "<tr><td class=\"left\">TP2</td><td>1.5 s</td></tr>\n</table>\n"
            "<p>Plan 1:</p>\n"
            "<table>\n"
            "<tr><th class=\"left\">memory</th><td class=\"left\">80 GiB</td></tr>\n"
            "<tr><th class=\"left\">  free</th><td class=\"left\">2 GiB</td></tr>\n"
            "</table>\n"
            "<p>It fits.</p>\n"
            "</body></html>\n");
  for (const char* outside : {"http", "src=", "href=", "url(", "@import"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
}

TEST(Html, EscapesTextsAndBreaksTheirLines) {
  const std::string page = to_html_page("<script>\n\"a\" & b\n\nnext\n", "t");
  EXPECT_NE(page.find("<p>&lt;script&gt;<br>\n&quot;a&quot; &amp; b</p>\n<p>next</p>\n"),
            std::string::npos)
      << page;
}

}  // namespace
}  // namespace meshwright
