/// What a checkpoint records of the run that saved it, to warn of differences when it is resumed.
#pragma once

#include <map>
#include <string>

#include "core/plan/optimizer.hpp"
#include "executor/ranks/training_options.hpp"

namespace meshwright {

/// Of the number of tokens and some blocks of them, so that few pages of a large file are read.
std::string text_hash(const TokenText& text);

/// Values of the options by flag, without the seed, and "text" for the training text.
std::map<std::string, std::string> training_settings(const TrainingOptions& options,
                                                     OptimizerKind optimizer,
                                                     const TokenText& text);

/// One warning per value that differs; those that either side lacks are not compared.
std::string settings_warnings(const std::map<std::string, std::string>& saved,
                              const std::map<std::string, std::string>& now);

}  // namespace meshwright
