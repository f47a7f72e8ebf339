/// What the readers of graphs as JSON have in common.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/json_scanner.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

struct GraphScanner {
  const NamedText& file;
  JsonScanner scanner;

  explicit GraphScanner(const NamedText& text) : file(text), scanner(text.text, text.where) {}

  /// "file#/nodes/3"
  std::string place(const char* list, std::size_t index) const;
  /// Of a valid file with figures that are too large or not supported.
  [[noreturn]] void refuse(const std::string& what, const char* hint) const;
  /// Finite and at least 0.
  double number();
  std::int64_t whole();
  /// A whole number from `smallest` to `largest` at the member `key` of the file.
  int count(const char* key, int smallest, int largest);
};

/// Indices of nodes by their ids.
class NodeIds {
 public:
  /// InputError if an id is used twice.
  NodeIds(const std::vector<std::int64_t>& ids, const GraphScanner& graph);
  struct Ends {
    std::int32_t source, target;
  };
  /// InputError at edge number `edge` if an id does not exist.
  Ends ends(std::int64_t source, std::int64_t target, std::size_t edge) const;

 private:
  const GraphScanner& graph_;
  std::unordered_map<std::int64_t, std::int32_t> index_;
};

}  // namespace meshwright
