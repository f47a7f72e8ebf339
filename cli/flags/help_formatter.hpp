/// The layout of `meshwright --help` and `meshwright COMMAND --help`, and options as it shows them.
/// For sources of cli only: includes CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace meshwright {

/// Lists options under the title of their group: defaults and allowed values appear where the
/// description and the type name put them, and nowhere else.
std::shared_ptr<CLI::FormatterBase> make_help_formatter();

/// "PLAN", "--steps": how the help names an argument or an option.
std::string help_name(const CLI::Option& option);

/// An option, or a positional argument, whose value the help calls `type`.
template <class Value>
CLI::Option* add_value(CLI::App& app, const std::string& name, Value& value,
                       const std::string& type, const std::string& description) {
  return app.add_option(name, value, description)->type_name(type);
}

/// Options that are added to `app` during its lifetime appear under `title`.
class OptionGroup {
 public:
  OptionGroup(CLI::App& app, const std::string& title)
      : app_(app), previous_(app.option_defaults()->get_group()) {
    app_.option_defaults()->group(title);
  }
  OptionGroup(const OptionGroup&) = delete;
  OptionGroup& operator=(const OptionGroup&) = delete;
  ~OptionGroup() { app_.option_defaults()->group(previous_); }

 private:
  CLI::App& app_;
  std::string previous_;
};

// Groups that several files add options to.
inline constexpr const char* kSourceOptions = "Model and cluster";
inline constexpr const char* kBatchOptions = "Batch";
inline constexpr const char* kSizeOptions = "Parallelism";
inline constexpr const char* kPipelineOptions = "Pipeline schedule";
/// The last group of every command: --help, --json, --output.
inline constexpr const char* kGeneralOptions = "General options";

}  // namespace meshwright
