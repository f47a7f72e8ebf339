/// Muon: against its definition in double precision, and the same under every plan that it
/// supports.
#include <gmock/gmock.h>

#include "executor/training/muon.hpp"
#include "tests/executor/runs/adamw_emulation.hpp"
#include "tests/executor/runs/gradient_oracle.hpp"
#include "tests/executor/runs/training_runs.hpp"

namespace meshwright {
namespace {

using Values = std::vector<double>;

/// [rows, columns] row-major; the definition for matrices that are not tall, transposed for others.
Values orthogonalized(Values x, std::size_t rows, std::size_t columns) {
  if (rows > columns) {
    Values t(x.size());
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) t[j * rows + i] = x[i * columns + j];
    t = orthogonalized(t, columns, rows);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) x[i * columns + j] = t[j * rows + i];
    return x;
  }
  double squares = 0;
  for (const double v : x) squares += v * v;
  for (double& v : x) v /= std::sqrt(squares) + 1e-7;
  const auto product = [](const Values& a, const Values& b, std::size_t m, std::size_t k,
                          std::size_t n, bool transposed) {
    Values c(m * n);
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t l = 0; l < k; ++l)
          c[i * n + j] += a[i * k + l] * (transposed ? b[j * k + l] : b[l * n + j]);
    return c;
  };
  for (int step = 0; step < 5; ++step) {
    const Values a = product(x, x, rows, columns, rows, true);
    Values b = product(a, a, rows, rows, rows, false);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = -4.7750 * a[i] + 2.0315 * b[i];
    const Values more = product(b, x, rows, rows, columns, false);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + more[i];
  }
  return x;
}

TrainingOptions options_of_muon() {
  TrainingOptions options;
  options.learning_rate = 0.02F, options.momentum = 0.9F, options.weight_decay = 0.125F;
  options.gradient_clip = std::numeric_limits<float>::infinity();
  return options;
}
Strategy with_muon(Strategy strategy) {
  strategy.optimizer = OptimizerKind::kMuon;
  return strategy;
}

bool is_block_matrix(const std::string& name) {
  return name.starts_with("layer") && name.ends_with(".weight") &&
         name.find("norm") == std::string::npos;
}

/// Widths of queries, keys and values in the 16-wide GPT; else the whole matrix.
std::vector<std::size_t> parts_of(const std::string& name, std::size_t columns) {
  if (name.find("query_key_value") == std::string::npos) return {columns};
  return {columns / 3, columns / 3, columns / 3};
}

/// m = 0.9 m + 0.1 g, u = 0.9 m + 0.1 g, w = w - 0.02 (0.125 w + 0.2 sqrt(max(A, B)) O(u)).
void update_by_muon(const std::string& name, std::size_t rows, Values& momentum,
                    const std::vector<float>& gradient, std::vector<float>& weights) {
  const std::size_t columns = weights.size() / rows;
  Values next(weights.size());
  momentum.resize(weights.size());
  for (std::size_t i = 0; i < next.size(); ++i) {
    const auto g = static_cast<double>(gradient[i]);
    momentum[i] = 0.9 * momentum[i] + 0.1 * g;
    next[i] = 0.9 * momentum[i] + 0.1 * g;
  }
  std::size_t first = 0;
  for (const std::size_t width : parts_of(name, columns)) {
    Values part;
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t j = 0; j < width; ++j) part.push_back(next[row * columns + first + j]);
    part = orthogonalized(part, rows, width);
    const double scale = 0.2 * std::sqrt(static_cast<double>(std::max(rows, width)));
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t j = 0; j < width; ++j) {
        float& w = weights[row * columns + first + j];
        w -= static_cast<float>(0.02 *
                                (0.125 * static_cast<double>(w) + scale * part[row * width + j]));
      }
    first += width;
  }
}

// One step from the same weights: later ones would amplify rounding.
TEST(Muon, UpdatesMatricesOfBlocksByItsDefinitionAndTheRestByAdamW) {
  const TrainingOptions options = options_of_muon();
  GradientOracle oracle(kTinyGpt, tiny_strategy());
  const std::vector<float> initial = oracle.initial_weights();
  const auto result = oracle.at(initial, 0);
  std::vector<float> by_adamw = initial;
  EmulatedAdamW(options, {0, std::ssize(initial)}).update(by_adamw, result.gradient);
  Parameters expected = oracle.by_name(by_adamw);
  const Parameters start = oracle.by_name(initial), gradient = oracle.by_name(result.gradient);
  const ModelGraph model = tiny_model(kTinyGpt);
  int matrices = 0;
  for (const Tensor& tensor : model.tensors) {
    const auto* parameter = std::get_if<ParameterTensor>(&tensor.shape);
    if (parameter == nullptr || !is_block_matrix(tensor.name)) continue;
    ++matrices;
    Values momentum;
    expected[tensor.name] = start.at(tensor.name);
    update_by_muon(tensor.name, static_cast<std::size_t>(parameter->shape.front()), momentum,
                   gradient.at(tensor.name), expected[tensor.name]);
  }
  EXPECT_EQ(matrices, 4 * 4);
  const TrainingRun run =
      run_plan(kTinyGpt, with_muon(tiny_strategy()), {.training = options, .steps = 1});
  ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
  expect_same_parameters(expected, run.parameters, 1e-5);
}

class MuonUnder : public testing::TestWithParam<NamedPlan> {};

/// Newton-Schulz iterations amplify rounding: their first step by up to 3.4445^5 = 485.
TEST_P(MuonUnder, MatchesOneRank) {
  constexpr double kTolerance = 1e-4;
  const RunOptions run{.training = options_of_muon(), .steps = 5};
  const TrainingRun one = run_plan(GetParam().config, with_muon(tiny_strategy()), run);
  const TrainingRun many =
      run_plan(GetParam().config, with_muon(GetParam().applied_to(tiny_strategy())), run);
  expect_same_run(one, many, kTolerance);
}

std::vector<NamedPlan> plans() {
  using S = Strategy&;
  return {
      {"data_2_buckets", kTinyGpt,
       [](S s) {
         s.degrees.data = 2;
         s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(5000)};
       }},
      {"tensor_2", kTinyGpt, [](S s) { s.degrees.tensor = 2; }},
      {"tensor_4_of_2_key_heads", kTinyLlama, [](S s) { use_sequence_parallel(s, 4); }},
      {"pipeline_2", kTinyLlama, [](S s) { use_pipeline(s, 2, "zb-v", 2); }},
      {"tensor_2_pipeline_2_data_2", kTinyLlama,
       [](S s) { s.degrees = {.data = 2, .pipeline = 2, .tensor = 2}; }},
      {"context_2", kTinyLlama, [](S s) { s.degrees.context = 2; }},
      {"experts_2", kTinyMixtral, [](S s) { s.degrees.data = 2, s.degrees.expert = 2; }},
      {"experts_2_tensor_2", kTinyMixtral, [](S s) { s.degrees.tensor = 2, s.degrees.expert = 2; }},
  };
}

INSTANTIATE_TEST_SUITE_P(Plans, MuonUnder, testing::ValuesIn(plans()), plan_name);

TEST(Muon, IsRefusedWhereARankHasOnlyAPartOfAMatrix) {
  Strategy zero = tiny_strategy(), servers = tiny_strategy(), offload = tiny_strategy();
  use_data(zero, 2, 1);
  use_servers(servers, 2, 1);
  offload.data_parallelism.offload_optimizer = true;
  for (const Strategy& strategy : {zero, servers, offload}) {
    const TinyJob job = tiny_job(kTinyGpt, with_muon(strategy));
    EXPECT_THAT(check_runnable(job.plan, job.model), testing::SizeIs(1));
  }
}

}  // namespace
}  // namespace meshwright
