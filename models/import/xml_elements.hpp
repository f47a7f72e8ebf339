/// A safe subset of XML: elements with attributes in document order, without text. Parsed by expat.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/text/named_text.hpp"

namespace meshwright {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  int parent = -1;  ///< in the list of elements
  int line = 1;
};

inline constexpr std::size_t kMostXmlElements = 200'000;
inline constexpr int kDeepestXml = 64;

/// All elements, parents before children; text between elements is skipped. InputError if the XML
/// is not well-formed, too deep or too large, or has a document type (its entities can expand
/// without limit).
std::vector<XmlElement> parse_xml(const NamedText& source);

}  // namespace meshwright
