#include "tests/validation/validation_plans.hpp"

#include <fmt/format.h>

#include <functional>

#include "models/load/load.hpp"

namespace meshwright {
namespace {

/// Two sizes of a GPT, a Llama and a mixture of experts.
struct Size {
  const char* name;
  int hidden, heads, blocks, vocabulary, length;
};
constexpr Size kSmall{"small", 256, 8, 8, 1024, 64};
constexpr Size kMedium{"medium", 512, 8, 4, 2048, 128};

ModelGraph model_of(const std::string& config) {
  return model_from_config({.name = "validated", .where = "validated", .text = config});
}
ModelGraph gpt(const Size& s) {
  return model_of(fmt::format(
      R"({{"model_type":"gpt2","n_embd":{},"n_head":{},"n_layer":{},"vocab_size":{},"n_positions":{},
          "attn_pdrop":0,"embd_pdrop":0,"resid_pdrop":0}})",
      s.hidden, s.heads, s.blocks, s.vocabulary, s.length));
}
ModelGraph llama(const Size& s) {
  return model_of(fmt::format(
      R"({{"model_type":"llama","hidden_size":{},"num_attention_heads":{},"num_key_value_heads":{},
          "num_hidden_layers":{},"intermediate_size":{},"vocab_size":{},
          "max_position_embeddings":{}}})",
      s.hidden, s.heads, s.heads, s.blocks, 3 * s.hidden, s.vocabulary, s.length));
}
ModelGraph mixture(const Size& s) {
  return model_of(fmt::format(
      R"({{"model_type":"mixtral","hidden_size":{},"num_attention_heads":{},
          "num_key_value_heads":{},"num_hidden_layers":{},"intermediate_size":{},"vocab_size":{},
          "max_position_embeddings":{},"num_local_experts":4,"num_experts_per_tok":2,
          "sliding_window":null}})",
      s.hidden, s.heads, s.heads, s.blocks, 2 * s.hidden, s.vocabulary, s.length));
}

Strategy base_of(const Size& size) {
  Strategy s;
  s.dtype = Dtype::kFp32;
  s.micro_batch = 1;
  s.global_batch = 8;
  s.sequence_length = size.length;
  return s;
}

class List {
 public:
  using Change = std::function<void(Strategy&)>;
  void add(const Size& size, ModelGraph (*build)(const Size&), const char* kind, const char* mode,
           const Change& change) {
    ValidationPlan plan{fmt::format("{} {}, {}", size.name, kind, mode), build(size),
                        base_of(size)};
    change(plan.strategy);
    plans_.push_back(std::move(plan));
  }
  void add_gpt(const Size& size, const char* mode, const Change& change) {
    add(size, gpt, "gpt", mode, change);
  }
  std::vector<ValidationPlan> take() { return std::move(plans_); }

 private:
  std::vector<ValidationPlan> plans_;
};

void set_pipeline(Strategy& s, int stages, const char* schedule, int chunks = 1) {
  s.degrees.pipeline = stages;
  s.degrees.chunks = chunks;
  s.schedule = schedule;
}

}  // namespace

std::vector<ValidationPlan> validation_plans() {
  List list;
  for (const Size& size : {kSmall, kMedium}) {
    list.add_gpt(size, "one rank", [](Strategy&) {});
    list.add_gpt(size, "dp 2", [](Strategy& s) { s.degrees.data = 2; });
    list.add_gpt(size, "dp 4, zero 1", [](Strategy& s) { s.degrees.data = 4, s.zero = 1; });
    list.add_gpt(size, "dp 2, zero 2", [](Strategy& s) { s.degrees.data = 2, s.zero = 2; });
    list.add_gpt(size, "dp 2, zero 3", [](Strategy& s) { s.degrees.data = 2, s.zero = 3; });
    list.add_gpt(size, "tp 2", [](Strategy& s) { s.degrees.tensor = 2; });
    list.add_gpt(size, "tp 4, sequence parallel",
                 [](Strategy& s) { s.degrees.tensor = 4, s.sequence_parallel = true; });
    list.add_gpt(size, "pp 2, gpipe", [](Strategy& s) { set_pipeline(s, 2, "gpipe"); });
    list.add_gpt(size, "pp 4, 1f1b", [](Strategy& s) { set_pipeline(s, 4, "1f1b"); });
    list.add_gpt(size, "pp 4, zb-h1", [](Strategy& s) { set_pipeline(s, 4, "zb-h1"); });
    list.add_gpt(size, "pp 2 x 2, interleaved",
                 [](Strategy& s) { set_pipeline(s, 2, "interleaved-1f1b", 2); });
    list.add_gpt(size, "cp 2", [](Strategy& s) { s.degrees.context = 2; });
    list.add_gpt(size, "recompute full",
                 [](Strategy& s) { s.recompute.kind = RecomputeKind::kFull; });
    list.add_gpt(size, "tp 2, pp 2, dp 2", [](Strategy& s) {
      set_pipeline(s, 2, "1f1b");
      s.degrees.tensor = s.degrees.data = 2;
    });
    list.add(size, llama, "llama", "one rank", [](Strategy&) {});
    list.add(size, llama, "llama", "tp 2, dp 2",
             [](Strategy& s) { s.degrees.tensor = s.degrees.data = 2; });
    list.add(size, llama, "llama", "pp 4, pipedream",
             [](Strategy& s) { set_pipeline(s, 4, "pipedream"); });
    list.add(size, llama, "llama", "pp 2, dp 2, pipedream-2bw", [](Strategy& s) {
      set_pipeline(s, 2, "pipedream-2bw");
      s.degrees.data = 2;
    });
    list.add(size, mixture, "mixture", "ep 2",
             [](Strategy& s) { s.degrees.data = s.degrees.expert = 2; });
    // The router's choice depends on text and weights and cannot be predicted; with a capacity all
    // experts have equal work.
    list.add(size, mixture, "mixture", "ep 4, pp 2, capacity", [](Strategy& s) {
      set_pipeline(s, 2, "1f1b");
      s.degrees.data = s.degrees.expert = 4;
      s.model_parallelism.routing.capacity = 1.25;
    });
  }
  list.add_gpt(kSmall, "pp 8, 1f1b", [](Strategy& s) { set_pipeline(s, 8, "1f1b"); });
  list.add_gpt(kSmall, "pp 4 x 2, zb-v", [](Strategy& s) { set_pipeline(s, 4, "zb-v", 2); });
  list.add_gpt(kSmall, "dp 8", [](Strategy& s) { s.degrees.data = 8; });
  list.add_gpt(kSmall, "tp 2, pp 4, dp 2", [](Strategy& s) {
    set_pipeline(s, 4, "1f1b");
    s.degrees.tensor = s.degrees.data = 2;
  });
  list.add_gpt(kSmall, "tp 4, pp 2, dp 2", [](Strategy& s) {
    set_pipeline(s, 2, "1f1b");
    s.degrees.tensor = 4;
    s.degrees.data = 2;
  });
  list.add_gpt(kSmall, "tp 2, cp 2, pp 2, dp 2", [](Strategy& s) {
    set_pipeline(s, 2, "1f1b");
    s.degrees.tensor = s.degrees.context = s.degrees.data = 2;
  });
  list.add_gpt(kSmall, "dp 4, parameter server", [](Strategy& s) {
    s.degrees.data = 4;
    s.data_parallelism.kind = DataParallelKind::kParameterServer;
  });
  list.add_gpt(kMedium, "bf16, one rank", [](Strategy& s) { s.dtype = Dtype::kBf16; });
  list.add_gpt(kMedium, "bf16, tp 2", [](Strategy& s) {
    s.dtype = Dtype::kBf16;
    s.degrees.tensor = 2;
  });
  return list.take();
}

}  // namespace meshwright
