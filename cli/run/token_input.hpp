/// The training text of `run`: --text, and --tokens with the formats of other programs.
#pragma once

#include <string>
#include <vector>

#include "cli/run/run_flags.hpp"
#include "core/model/model_graph.hpp"
#include "executor/ranks/token_text.hpp"

namespace meshwright {

/// Token IDs of --tokens, --text or the built-in text. InputError for files that cannot be read and
/// token IDs outside the model's vocabulary.
TokenText read_words(const RunFlags& flags, const ModelGraph& model);

/// One token per byte of a file; of the built-in text if `path` is empty.
TokenText words_of_text(const std::string& path, const ModelGraph& model);

/// Files, or patterns such as "data/*.bin" (files in the order of their names). Token IDs are
/// little-endian; the type is that of the file's header (llm.c) or index (Megatron-LM: "x.idx" next
/// to "x.bin"), else `type`, or uint16 if that is empty.
TokenText words_of_tokens(const std::vector<std::string>& patterns, const std::string& type,
                          const ModelGraph& model);

}  // namespace meshwright
