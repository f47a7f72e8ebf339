#include "models/import/xml_elements.hpp"

#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "models/import/import_lines.hpp"

namespace meshwright {
namespace {

/// Receives expat's callbacks; a problem stops the parser.
struct XmlBuilder {
  XML_Parser parser = nullptr;
  std::vector<XmlElement> elements;
  std::vector<int> open;
  std::string problem;

  void stop(std::string what) {
    if (!problem.empty()) return;
    problem = std::move(what);
    XML_StopParser(parser, XML_FALSE);
  }

  static void XMLCALL on_start(void* self, const XML_Char* name, const XML_Char** attributes) {
    auto& builder = *static_cast<XmlBuilder*>(self);
    if (builder.open.size() >= static_cast<std::size_t>(kDeepestXml))
      return builder.stop(fmt::format("elements nested deeper than {}", kDeepestXml));
    if (builder.elements.size() >= kMostXmlElements)
      return builder.stop(fmt::format("more than {} elements", kMostXmlElements));
    XmlElement element{.name = name, .attributes = {}};
    for (; attributes[0] != nullptr; attributes += 2)
      element.attributes[attributes[0]] = attributes[1];
    element.parent = builder.open.empty() ? -1 : builder.open.back();
    element.line = static_cast<int>(XML_GetCurrentLineNumber(builder.parser));
    builder.open.push_back(static_cast<int>(builder.elements.size()));
    builder.elements.push_back(std::move(element));
  }
  static void XMLCALL on_end(void* self, const XML_Char*) {
    auto& builder = *static_cast<XmlBuilder*>(self);
    if (!builder.open.empty()) builder.open.pop_back();
  }
  static void XMLCALL on_doctype(void* self, const XML_Char*, const XML_Char*, const XML_Char*,
                                 int) {
    static_cast<XmlBuilder*>(self)->stop("document type declarations are not allowed");
  }
};

}  // namespace

std::vector<XmlElement> parse_xml(const NamedText& source) {
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate("UTF-8"), &XML_ParserFree);
  if (parser == nullptr) throw std::bad_alloc();
  XmlBuilder builder;
  builder.parser = parser.get();
  XML_SetUserData(parser.get(), &builder);
  XML_SetElementHandler(parser.get(), XmlBuilder::on_start, XmlBuilder::on_end);
  XML_SetStartDoctypeDeclHandler(parser.get(), XmlBuilder::on_doctype);
  constexpr std::size_t kPiece = std::size_t{1} << 20;  // expat counts in int
  for (std::size_t at = 0; at <= source.text.size(); at += kPiece) {
    const std::size_t size = std::min(kPiece, source.text.size() - at);
    const bool last = at + size >= source.text.size();
    if (XML_Parse(parser.get(), source.text.data() + at, static_cast<int>(size), last ? 1 : 0) ==
        XML_STATUS_OK) {
      if (last) break;
      continue;
    }
    const auto line = static_cast<int>(XML_GetCurrentLineNumber(parser.get()));
    if (!builder.problem.empty()) refuse(source, line, builder.problem, "pass the file unchanged");
    refuse(source, line,
           fmt::format("invalid XML: {}", XML_ErrorString(XML_GetErrorCode(parser.get()))),
           "pass the file unchanged");
  }
  return std::move(builder.elements);
}

}  // namespace meshwright
