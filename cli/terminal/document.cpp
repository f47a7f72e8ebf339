#include "cli/terminal/document.hpp"

namespace meshwright {
namespace {

struct TextWriter {
  std::string operator()(const std::string& text) const { return text; }
  std::string operator()(const Table& table) const { return to_text(table); }
  std::string operator()(const IndentedTable& block) const { return to_indented_text(block.table); }
  std::string operator()(const std::vector<NamedValue>& list) const { return to_text(list); }
};

}  // namespace

void Document::add(Block block) {
  std::string* text = std::get_if<std::string>(&block);
  if (text != nullptr && text->empty()) return;
  std::string* before = blocks_.empty() ? nullptr : std::get_if<std::string>(&blocks_.back());
  if (text != nullptr && before != nullptr)
    *before += *text;
  else
    blocks_.push_back(std::move(block));
}

Document& Document::operator+=(Document more) {
  for (Block& block : more.blocks_) add(std::move(block));
  return *this;
}

std::string to_text(const Document& document) {
  std::string text;
  for (const Document::Block& block : document.blocks()) text += std::visit(TextWriter(), block);
  return text;
}

std::string texts_of(const Document& document) {
  std::string text;
  for (const Document::Block& block : document.blocks())
    if (const std::string* part = std::get_if<std::string>(&block)) text += *part;
  return text;
}

}  // namespace meshwright
