/// A safe subset of XML: elements with attributes, in order, no text. Parsed by expat.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/load.hpp"

namespace meshwright {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  int parent = -1;  ///< in the list of elements
  int line = 1;
};

inline constexpr std::size_t kMostXmlElements = 200'000;
inline constexpr int kDeepestXml = 64;

/// All elements, parents before children. InputError: not well-formed, a document type (entities
/// may expand without end), too deep, too many. Text between elements is passed over.
std::vector<XmlElement> parse_xml(const NamedText& source);

}  // namespace meshwright
