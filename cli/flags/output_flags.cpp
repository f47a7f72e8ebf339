#include "cli/flags/output_flags.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <utility>

#include "cli/flags/choice_flag.hpp"
#include "cli/flags/help_formatter.hpp"
#include "core/formats/file.hpp"

namespace meshwright {
namespace {

constexpr std::array<std::pair<std::string_view, DocumentFormat>, 5> kDocumentFormats{
    {{"text", DocumentFormat::kText},
     {"markdown", DocumentFormat::kMarkdown},
     {"csv", DocumentFormat::kCsv},
     {"json", DocumentFormat::kJson},
     {"html", DocumentFormat::kHtml}}};

std::vector<std::string> document_format_words() {
  std::vector<std::string> words;
  words.reserve(kDocumentFormats.size());
  for (const auto& [word, format] : kDocumentFormats) words.emplace_back(word);
  return words;
}

std::optional<DocumentFormat> document_format_from_word(std::string_view word) {
  for (const auto& [name, format] : kDocumentFormats)
    if (name == word) return format;
  return std::nullopt;
}

}  // namespace

void add_output_flags(CLI::App& command, OutputFlags& flags, const std::string& content) {
  const OptionGroup group(command, kGeneralOptions);
  command.get_help_ptr()->group(kGeneralOptions);
  command.add_flag("--json", flags.json, "print the result as JSON");
  add_value(command, "-o,--output", flags.file, "FILE",
            "write " + content + " to FILE; - for standard output");
}

void add_report_flags(CLI::App& command, OutputFlags& flags, const std::string& content) {
  add_output_flags(command, flags, content);
  const OptionGroup group(command, kGeneralOptions);
  CLI::Option* format =
      add_choice(command, "--format", flags.format, document_format_from_word,
                 document_format_words(), "format of the tables; json: as --json (default: text)");
  flags.command = command.get_name();
  command.parse_complete_callback([&flags, format] {
    if (flags.json && format->count() > 0 && flags.format != DocumentFormat::kJson)
      refuse_flag("--json", "cannot be combined with '--format'", "remove one of them");
    if (flags.format == DocumentFormat::kJson) flags.json = true;
  });
}

Outcome outcome_of(const Document& document, const OutputFlags& flags) {
  if (flags.json) return {.text = to_text(document)};
  switch (flags.format) {
    case DocumentFormat::kMarkdown:
      return {.text = to_markdown(document)};
    case DocumentFormat::kCsv:
      return {.text = to_csv(document), .notes = texts_of(document)};
    case DocumentFormat::kHtml:
      return {.text = to_html_page(document, "meshwright " + flags.command)};
    case DocumentFormat::kText:
    case DocumentFormat::kJson:
      break;
  }
  return {.text = to_text(document)};
}

Outcome deliver(const Document& document, const OutputFlags& flags) {
  Outcome outcome = outcome_of(document, flags);
  if (flags.file.empty() || flags.file == "-") return outcome;
  write_file(flags.file, outcome.text);
  outcome.text.clear();
  return outcome;
}

}  // namespace meshwright
