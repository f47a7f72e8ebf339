// Valid files with flipped, removed or duplicated bytes: loaders must either succeed or throw
// InputError. Any other exception, including a broken invariant, fails the test.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "core/base/error.hpp"
#include "models/load/load.hpp"
#include "tests/models/mutated_text.hpp"

namespace meshwright {
namespace {

constexpr int kCases = 1000;  ///< for models, and as many for clusters
constexpr unsigned kSeed = 20260821;

/// The number of mutated texts that were rejected.
template <class Load>
int refused(const std::vector<NamedText>& valid, Load load) {
  std::mt19937 random(kSeed);
  int count = 0;
  for (int i = 0; i < kCases; ++i) {
    NamedText text = valid[static_cast<std::size_t>(i) % valid.size()];
    text.text = mutated(text.text, random);
    try {
      load(text);
    } catch (const InputError& error) {
      EXPECT_FALSE(error.diagnostics().empty());
      ++count;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << kSeed << ", case " << i << ": " << error.what() << "\n"
                    << text.text;
    }
  }
  return count;
}

TEST(MutatedModels, AreReadOrRefusedButNeverCrash) {
  std::vector<NamedText> valid;
  for (const std::string& name : model_preset_names()) valid.push_back(find_model(name));
  const int count = refused(valid, [](const NamedText& text) { model_from_config(text); });
  EXPECT_GT(count, kCases / 10);  // the mutations do break files …
  EXPECT_LT(count, kCases);       // … but not all of them
}

TEST(MutatedClusters, AreReadOrRefusedButNeverCrash) {
  std::vector<NamedText> valid;
  for (const std::string& name : cluster_preset_names()) valid.push_back(find_cluster(name));
  const int count = refused(valid, [](const NamedText& text) { cluster_from_toml(text); });
  EXPECT_GT(count, kCases / 10);
  EXPECT_LT(count, kCases);
}

}  // namespace
}  // namespace meshwright
