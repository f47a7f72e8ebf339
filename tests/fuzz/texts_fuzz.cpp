/// Any text as the value of an option or key: rejected, or written again as a text that means the
/// same. The first byte selects the kind of value.
#include "core/base/parse_quantity.hpp"
#include "core/plan/batch_shares.hpp"
#include "core/plan/data_parallelism.hpp"
#include "core/plan/layer_options.hpp"
#include "core/plan/model_parallelism.hpp"
#include "core/plan/recompute.hpp"
#include "core/plan/stage_cut.hpp"
#include "core/schedule/schedule.hpp"
#include "fuzz_reader.hpp"
#include "models/text/toml_text.hpp"

namespace meshwright {
namespace {

/// `read` returns nothing for texts that it rejects.
template <class Read>
void write_again(std::string_view text, const Read& read) {
  const auto value = read(text);
  if (value) MW_CHECK(read(to_text(*value)) == value);
}

/// Without the quotes of TOML.
template <class Quantity>
void write_again(Quantity value, Quantity (*read)(std::string_view, std::string_view)) {
  const std::string text = text_of(value);
  MW_CHECK(read(std::string_view(text).substr(1, text.size() - 2), "again") == value);
}

void read(std::string_view input) {
  if (input.empty()) return;
  const std::string_view text = input.substr(1);
  switch (static_cast<unsigned char>(input[0]) % 11) {
    case 0: {
      const std::vector<Action> order = order_from_text(text);
      MW_CHECK(order_from_text(to_text(order)) == order);
      break;
    }
    case 1:
      write_again(text, recompute_from_text);
      break;
    case 2:
      write_again(text, stage_cut_from_text);
      break;
    case 3:
      write_again(text, buckets_from_text);
      break;
    case 4:
      write_again(text, rank_order_from_text);
      break;
    case 5:
      write_again(parse_bytes(text, "input"), parse_bytes);
      break;
    case 6:
      write_again(parse_bandwidth(text, "input"), parse_bandwidth);
      break;
    case 7:
      write_again(parse_seconds(text, "input"), parse_seconds);
      break;
    case 8:
      write_again(parse_flop_rate(text, "input"), parse_flop_rate);
      break;
    case 9:
      write_again(text, layer_options_from_text);
      break;
    default:
      write_again(text, batch_shares_from_text);
  }
}

}  // namespace
}  // namespace meshwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return meshwright::fuzz_reader(data, size, meshwright::read);
}
