#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "core/base/error.hpp"
#include "core/base/number_from_text.hpp"
#include "core/base/split_at.hpp"
#include "core/formats/file.hpp"
#include "models/graphs/graph_files.hpp"

namespace meshwright {
namespace {

constexpr std::string_view kOperatorColumns =
    "op_name,forward-compute,backward-compute,input_size,output_size,weights,activations,"
    "fwd_reserved,bwd_reserved";
constexpr double kLargestMeasurement = 1e9;  ///< microseconds and megabytes
constexpr double kBytesPerMegabyte = 1 << 20;
constexpr std::size_t kLargestTable = std::size_t{1} << 20;  ///< bytes of a file
constexpr std::size_t kMostFiles = 4096;                     ///< looked at in the folder

bool has_part(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// What the tables do not say about an operator: from its name, as Aceso's search has it.
struct OperatorKind {
  std::string_view name;
  bool has_algorithms;
  std::array<ChainLayout, kChainAlgorithms> input, output;
};
using enum ChainLayout;
constexpr std::array<OperatorKind, 17> kGptOperators = {{
    {"encoder-embedding", false, {kAny}, {kReplicated}},
    {"enc-1st-layernorm", false, {kReplicated}, {kReplicated}},
    {"enc-2nd-layernorm", false, {kReplicated}, {kReplicated}},
    {"enc-attention-qkv", true, {kReplicated, kSplitHidden}, {kSplitHidden, kReplicated}},
    {"enc-attention-score", false, {kSplitHidden}, {kSplitHeads}},
    {"enc-attention-softmax", false, {kSplitHeads}, {kSplitHeads}},
    {"enc-attention-dropout", false, {kSplitHeads}, {kSplitHeads}},
    {"enc-attention-context", false, {kSplitHeads}, {kSplitHidden}},
    {"enc-attention-dense", true, {kSplitHidden, kReplicated}, {kReplicated, kSplitHidden}},
    {"enc-post-attention-dropout", false, {kReplicated}, {kReplicated}},
    {"enc-MLP-GEMM-1", true, {kReplicated, kSplitHidden}, {kSplitHidden, kReplicated}},
    {"enc-MLP-gelu", false, {kSplitHidden}, {kSplitHidden}},
    {"enc-MLP-GEMM-2", true, {kSplitHidden, kReplicated}, {kReplicated, kSplitHidden}},
    {"enc-post-MLP-dropout", false, {kReplicated}, {kReplicated}},
    {"final-layernorm", false, {kReplicated}, {kBatchFirst}},
    {"gpt-post-process", false, {kBatchFirst}, {kAny}},
    {"t5-post-process", false, {kAny}, {kAny}},
}};

/// Operators of convolutional networks are split like their input.
ChainOperator convolution_operator(const std::string& name) {
  ChainOperator op{.name = name};
  if (has_part(name, "conv") || has_part(name, "downsample")) op.algorithms = kChainAlgorithms;
  op.input.fill(kBatchFirst);
  op.output.fill(kBatchFirst);
  op.can_be_recomputed = name != "conv1";
  op.begins_layer = has_part(name, "-conv1");
  if (name == "bn1" || has_part(name, "-bn3") ||
      (has_part(name, "-downsample") && !has_part(name, "0-0")))
    op.activation_share = 0;
  return op;
}

ChainOperator transformer_operator(const std::string& name, const OperatorKind* kind) {
  ChainOperator op{.name = name};
  if (kind != nullptr) {  // conversions of encoder-decoders were not measured
    if (kind->has_algorithms) op.algorithms = kChainAlgorithms;
    op.input = kind->input;
    op.output = kind->output;
  }
  op.can_be_recomputed = !has_part(name, "coder-embedding") && !has_part(name, "-post-process");
  op.begins_layer = name == "enc-1st-layernorm";
  if (name == "enc-attention-softmax") op.activation_share = 0;
  if (name == "enc-attention-dropout") op.activation_share = 1.5;  // its mask, and its output
  return op;
}

bool is_in_layer(std::string_view name) {
  return (name.starts_with("enc-") || name.starts_with("dec-")) &&
         !has_part(name, "-final-layernorm");
}

/// Of a file of measured operators: FOLDER/MODEL_mbsM_tpT_algoA.csv.
struct TableName {
  int microbatch = 1, tensor = 1, algorithm = 0;
};

/// The number after `key`, removed from `rest` with it.
std::optional<int> take_number(std::string_view& rest, std::string_view key) {
  if (!rest.starts_with(key)) return std::nullopt;
  rest.remove_prefix(key.size());
  const std::size_t size = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const auto value = number_from_text<int>(rest.substr(0, size));
  rest.remove_prefix(size);
  return value;
}

std::optional<TableName> parse_table_name(std::string_view file, std::string_view model) {
  if (!file.starts_with(model)) return std::nullopt;
  file.remove_prefix(model.size());
  const auto microbatch = take_number(file, "_mbs");
  const auto tensor = microbatch ? take_number(file, "_tp") : std::nullopt;
  const auto algorithm = tensor ? take_number(file, "_algo") : std::nullopt;
  if (!algorithm || file != ".csv" || *microbatch < 1 || *microbatch > (1 << 20) ||
      *algorithm >= kChainAlgorithms || *tensor < 1 || !std::has_single_bit(unsigned(*tensor)) ||
      *tensor >= 1 << kMostChainTensorDegrees)
    return std::nullopt;
  return TableName{*microbatch, *tensor, *algorithm};
}

std::vector<TableName> tables_in(const std::filesystem::path& folder, std::string_view model) {
  std::vector<TableName> names;
  std::error_code error;
  std::size_t seen = 0;
  std::filesystem::directory_iterator entries(folder.empty() ? "." : folder, error), end;
  for (; !error && entries != end && seen < kMostFiles; entries.increment(error), ++seen)
    if (const auto name = parse_table_name(entries->path().filename().string(), model))
      names.push_back(*name);
  return names;
}

class AcesoReader {
 public:
  AcesoReader(const std::string& path, std::optional<int> layers)
      : folder_(std::filesystem::path(path).parent_path()),
        model_(std::filesystem::path(path).filename().string()),
        where_(path),
        layers_(layers) {}
  ChainProblem read();

 private:
  struct Row {
    std::string where;
    std::vector<std::string_view> fields;
  };
  /// The lines of a CSV file after its first, which must be `columns`.
  std::vector<Row> rows_of(const std::string& file, std::string_view columns, std::string& text);
  static double number(const Row& row, std::size_t field);
  void read_operators(const std::vector<Row>& rows);
  void repeat_layers();
  void read_costs(const TableName& table);
  void read_collective(CollectiveKind kind, std::string_view name, int devices);
  std::vector<BytesPerSecond> read_rates(const std::string& file);
  std::string path_of(const std::string& file) const { return (folder_ / file).string(); }
  std::string table_path(const TableName& table) const {
    return path_of(fmt::format("{}_mbs{}_tp{}_algo{}.csv", model_, table.microbatch, table.tensor,
                               table.algorithm));
  }

  std::filesystem::path folder_;
  std::string model_, where_;
  std::optional<int> layers_;
  ChainProblem problem_;
  std::unordered_map<std::string, std::size_t> index_;
};

std::vector<AcesoReader::Row> AcesoReader::rows_of(const std::string& file,
                                                   std::string_view columns, std::string& text) {
  text = read_file(file, kLargestTable);
  std::vector<Row> rows;
  std::size_t line = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view fields = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!fields.empty() && fields.back() == '\r') fields.remove_suffix(1);
    if (++line == 1) {
      if (fields != columns)
        throw InputError({fmt::format("{}:1", file), fmt::format("unknown columns '{}'", fields),
                          fmt::format("expected '{}'", columns)});
      continue;
    }
    if (fields.empty()) continue;
    rows.push_back({fmt::format("{}:{}", file, line), split_at_commas(fields)});
    const auto expected =
        static_cast<std::size_t>(std::count(columns.begin(), columns.end(), ',') + 1);
    if (rows.back().fields.size() != expected)
      throw InputError(
          {rows.back().where,
           fmt::format("expected {} values, got {}", expected, rows.back().fields.size()),
           fmt::format("give '{}'", columns)});
  }
  return rows;
}

double AcesoReader::number(const Row& row, std::size_t field) {
  const auto value = number_from_text<double>(row.fields[field]);
  if (!value || !std::isfinite(*value) || *value < 0 || *value > kLargestMeasurement)
    throw InputError({row.where, fmt::format("invalid number '{}'", row.fields[field]),
                      fmt::format("give a number from 0 to {:g}", kLargestMeasurement)});
  return *value;
}

void AcesoReader::read_operators(const std::vector<Row>& rows) {
  const bool is_encoder_decoder = std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.fields[0] == "decoder-embedding";
  });
  for (const Row& row : rows) {
    const std::string name(row.fields[0]);
    if (name.empty() || !index_.emplace(name, problem_.operators.size()).second)
      throw InputError({row.where, fmt::format("operator '{}' has no name of its own", name),
                        "give every operator of a layer its own name"});
    const auto* kind = std::find_if(kGptOperators.begin(), kGptOperators.end(),
                                    [&](const OperatorKind& k) { return k.name == name; });
    const bool is_known = kind != kGptOperators.end();
    if (is_encoder_decoder || is_known)
      problem_.operators.push_back(
          transformer_operator(name, is_encoder_decoder || !is_known ? nullptr : kind));
    else if (!is_in_layer(name))
      problem_.operators.push_back(convolution_operator(name));
    else
      throw InputError({row.where, fmt::format("unknown operator '{}'", name),
                        "give a table of GPT, T5 or ResNet as the profiler of Aceso writes it"});
  }
  if (problem_.operators.empty())
    throw InputError({where_, "the tables have no operators", "give at least one operator"});
}

/// Tables have one layer of the encoder and one of the decoder.
void AcesoReader::repeat_layers() {
  const auto& operators = problem_.operators;
  const bool has_layers = std::any_of(operators.begin(), operators.end(),
                                      [](const ChainOperator& op) { return is_in_layer(op.name); });
  if (has_layers && !layers_)
    throw InputError({where_, "the tables have one layer of the model, which has more",
                      "set --layers, such as --layers 40"});
  if (!has_layers && layers_)
    throw InputError({where_, "the tables have all layers of the model", "remove --layers"});
  for (std::size_t begin = 0; begin < operators.size();) {
    std::size_t end = begin + 1;
    const bool is_layer = is_in_layer(operators[begin].name);
    while (is_layer && end < operators.size() && is_in_layer(operators[end].name) &&
           operators[end].name.substr(0, 3) == operators[begin].name.substr(0, 3))
      ++end;
    for (int copy = is_layer ? *layers_ : 1; copy > 0; --copy) {
      if (problem_.chain.size() + end - begin > kMostChainOperators)
        throw InputError({where_, fmt::format("more than {} operators", kMostChainOperators),
                          "set --layers to fewer"});
      for (std::size_t i = begin; i < end; ++i)
        problem_.chain.push_back(static_cast<std::int32_t>(i));
    }
    begin = end;
  }
}

void AcesoReader::read_costs(const TableName& table) {
  std::string text;
  const auto sizes = std::lower_bound(problem_.microbatches.begin(), problem_.microbatches.end(),
                                      table.microbatch);
  const auto microbatch = static_cast<std::size_t>(sizes - problem_.microbatches.begin());
  const int log_tensor = static_cast<int>(std::bit_width(static_cast<unsigned>(table.tensor))) - 1;
  for (const Row& row : rows_of(table_path(table), kOperatorColumns, text)) {
    const auto found = index_.find(std::string(row.fields[0]));
    if (found == index_.end())
      throw InputError({row.where, fmt::format("unknown operator '{}'", row.fields[0]),
                        "all tables of a model must have the same operators"});
    const auto time = [&](std::size_t field) { return Seconds(number(row, field) * 1e-6); };
    const auto size = [&](std::size_t field) {
      return Bytes(std::llround(number(row, field) * kBytesPerMegabyte));
    };
    ChainOperator& op = problem_.operators[found->second];
    op.costs[problem_.cost_index(microbatch, log_tensor, table.algorithm)] = {
        .is_measured = true,
        .forward = time(1),
        .backward = time(2),
        .input = size(3),
        .output = size(4),
        .parameters = size(5),
        .activations = size(6),
        .forward_workspace = size(7),
        .backward_workspace = size(8)};
  }
}

void AcesoReader::read_collective(CollectiveKind kind, std::string_view name, int devices) {
  const std::string path = path_of(fmt::format("prim_{}_{}_{}gpus.csv", model_, name, devices));
  if (!std::filesystem::exists(path)) return;  // its conversions are not possible
  std::string text;
  CollectiveTimes& times = problem_.collectives[kind][devices];
  for (const Row& row : rows_of(path, "data_size(MB),time(ms)", text))
    times[std::llround(number(row, 0))] = Seconds(number(row, 1) * 1e-3);
}

/// A line of sizes, 1, 2, 4, … MB, and one of rates in GB/s.
std::vector<BytesPerSecond> AcesoReader::read_rates(const std::string& file) {
  std::string text = read_file(path_of(file), kLargestTable);
  const std::size_t begin = std::min(text.find('\n'), text.size() - 1) + 1;
  std::string_view line = std::string_view(text).substr(begin);
  line = line.substr(0, line.find('\n'));
  Row row{fmt::format("{}:2", path_of(file)), split_at_commas(line)};
  std::vector<BytesPerSecond> rates;
  for (std::size_t i = 0; i < row.fields.size(); ++i) {
    std::string_view& field = row.fields[i];
    while (!field.empty() && (field.front() == ' ' || field.front() == '\r'))
      field.remove_prefix(1);
    while (!field.empty() && (field.back() == ' ' || field.back() == '\r')) field.remove_suffix(1);
    const double rate = number(row, i);
    if (rate <= 0) throw InputError({row.where, "a rate is 0", "give rates in GB/s"});
    // A megabyte takes 1 ms at 1 GB/s in Aceso.
    rates.emplace_back(rate * kBytesPerMegabyte * 1e3);
  }
  return rates;
}

ChainProblem AcesoReader::read() {
  const std::vector<TableName> tables = tables_in(folder_, model_);
  if (tables.empty())
    throw InputError({where_, fmt::format("no tables '{}_mbs*_tp*_algo*.csv'", model_),
                      "give FOLDER/MODEL of tables that the profiler of Aceso wrote"});
  for (const TableName& table : tables) {
    problem_.microbatches.push_back(table.microbatch);
    problem_.tensor_degrees =
        std::max(problem_.tensor_degrees,
                 static_cast<int>(std::bit_width(static_cast<unsigned>(table.tensor))));
  }
  std::sort(problem_.microbatches.begin(), problem_.microbatches.end());
  problem_.microbatches.erase(
      std::unique(problem_.microbatches.begin(), problem_.microbatches.end()),
      problem_.microbatches.end());
  if (problem_.microbatches.size() > kMostChainMicrobatches)
    throw InputError({where_, fmt::format("more than {} micro-batch sizes", kMostChainMicrobatches),
                      "remove tables"});
  std::string text;
  const TableName* first = &tables.front();
  for (const TableName& table : tables)
    if (std::tie(table.microbatch, table.tensor, table.algorithm) <
        std::tie(first->microbatch, first->tensor, first->algorithm))
      first = &table;
  read_operators(rows_of(table_path(*first), kOperatorColumns, text));
  for (ChainOperator& op : problem_.operators)
    op.costs.resize(problem_.microbatches.size() *
                    static_cast<std::size_t>(problem_.tensor_degrees) * kChainAlgorithms);
  repeat_layers();
  for (const TableName& table : tables) read_costs(table);
  for (int log_tensor = 1; log_tensor < problem_.tensor_degrees; ++log_tensor) {
    read_collective(CollectiveKind::kAllGather, "all_gather", 1 << log_tensor);
    read_collective(CollectiveKind::kAllToAll, "all_to_all", 1 << log_tensor);
  }
  problem_.rates_in_node = read_rates("p2p_intra_node.csv");
  problem_.rates_between_nodes = std::filesystem::exists(path_of("p2p_inter_node.csv"))
                                     ? read_rates("p2p_inter_node.csv")
                                     : problem_.rates_in_node;
  // fp16 parameters and gradients, and fp32 parameters and two moments of Adam; all fp32 in
  // convolutional networks, whose operators are not layers of a transformer.
  const bool is_transformer = layers_.has_value();
  problem_.state_share = is_transformer ? 8 : 4;
  check_chain_problem(problem_, where_);
  return problem_;
}

}  // namespace

bool is_aceso_profile(const std::string& path) {
  const std::filesystem::path file(path);
  std::error_code error;
  if (path == "-" || std::filesystem::exists(file, error)) return false;  // not a prefix of files
  return !tables_in(file.parent_path(), file.filename().string()).empty();
}

ChainProblem read_aceso(const std::string& path, std::optional<int> layers) {
  return AcesoReader(path, layers).read();
}

}  // namespace meshwright
