#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "core/formats/file.hpp"
#include "models/graphs/graph_files.hpp"
#include "tests/complaints.hpp"
#include "tests/replaced.hpp"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kTable =
    "op_name,forward-compute,backward-compute,input_size,output_size,weights,activations,"
    "fwd_reserved,bwd_reserved\n"
    "encoder-embedding,10,20,0.031,64,8,96,1,2\n"
    "enc-1st-layernorm,1,2,64,128,0,64,0,3\n"
    "enc-attention-dropout,3,4,64,128,0,32,0,3\n"
    "final-layernorm,5,6,64,64,0,64,0,1\r\n"
    "gpt-post-process,7,8,64,32,16,100,4,0\n";

/// The tables of a model, removed with their folder.
class Profile {
 public:
  Profile() : folder_(testing::TempDir() + "aceso-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
    write("gpt_tiny_mbs2_tp1_algo0.csv", kTable);
    write("gpt_tiny_mbs4_tp2_algo1.csv", kTable);
    write("prim_gpt_tiny_all_gather_2gpus.csv", "data_size(MB),time(ms)\n64,3.5\n");
    write("p2p_intra_node.csv", "1,2,4\n4, 8, 16\n");
  }
  ~Profile() { std::filesystem::remove_all(folder_); }
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  void write(const std::string& name, std::string_view text) const {
    write_file(folder_ + "/" + name, text);
  }
  std::string model() const { return folder_ + "/gpt_tiny"; }

 private:
  std::string folder_;
};

TEST(AcesoProfile, RepeatsLayersAndLooksUpMicrobatchesDegreesAndAlgorithms) {
  const Profile profile;
  ASSERT_TRUE(is_aceso_profile(profile.model()));
  const ChainProblem problem = read_aceso(profile.model(), 3);
  EXPECT_EQ(problem.chain, (std::vector<std::int32_t>{0, 1, 2, 1, 2, 1, 2, 3, 4}));
  EXPECT_EQ(problem.microbatches, (std::vector<int>{2, 4}));
  EXPECT_EQ(problem.tensor_degrees, 2);
  EXPECT_EQ(problem.state_share, 8);
  const ChainOperator& embedding = problem.operators[0];
  const ChainCosts& costs = problem.costs(embedding, 1, 1, 1);
  EXPECT_TRUE(costs.is_measured);
  EXPECT_DOUBLE_EQ(costs.forward.value, 10e-6);
  EXPECT_EQ(costs.parameters, Bytes(8 << 20));
  EXPECT_EQ(costs.backward_workspace, Bytes(2 << 20));
  EXPECT_FALSE(problem.costs(embedding, 1, 0, 0).is_measured);
  EXPECT_FALSE(embedding.can_be_recomputed);
  EXPECT_TRUE(problem.operators[1].begins_layer);
  EXPECT_EQ(problem.operators[2].activation_share, 1.5);
  EXPECT_EQ(problem.operators[2].input[0], ChainLayout::kSplitHeads);
  const CollectiveTimes& gather = problem.collectives.at(CollectiveKind::kAllGather).at(2);
  EXPECT_DOUBLE_EQ(gather.at(64).value, 3.5e-3);
  // A megabyte takes a millisecond at 1 GB/s.
  ASSERT_EQ(problem.rates_in_node.size(), 3U);
  EXPECT_DOUBLE_EQ((Bytes(1 << 20) / problem.rates_in_node[1]).value, 1e-3 / 8);
  EXPECT_EQ(problem.rates_between_nodes, problem.rates_in_node);
}

/// Encoder-decoders have a layer of each, and operators after the encoder.
TEST(AcesoProfile, RepeatsLayersOfEncoderAndDecoder) {
  const Profile profile;
  std::string table = replaced(std::string(kTable), "final-layernorm", "enc-final-layernorm");
  table = replaced(table, "gpt-post-process,7", "decoder-embedding,7");
  table += "dec-1st-layernorm,1,2,64,128,0,64,0,3\ndec-final-layernorm,1,2,3,4,5,6,7,8\n";
  profile.write("t5_tiny_mbs1_tp1_algo0.csv", table);
  const ChainProblem problem = read_aceso(replaced(profile.model(), "gpt", "t5"), 2);
  EXPECT_EQ(problem.chain, (std::vector<std::int32_t>{0, 1, 2, 1, 2, 3, 4, 5, 5, 6}));
  EXPECT_EQ(problem.operators[1].input[0], ChainLayout::kAny);
}

TEST(AcesoProfile, OfAConvolutionalNetworkHasAllLayers) {
  const Profile profile;
  std::string table = replaced(std::string(kTable), "encoder-embedding", "conv1");
  table = replaced(table, "enc-1st-layernorm", "bn1");
  table = replaced(table, "enc-attention-dropout", "layer1-0-conv1");
  table = replaced(table, "final-layernorm", "avgpool");
  table = replaced(table, "gpt-post-process", "fc");
  profile.write("resnet_tiny_mbs16_tp1_algo0.csv", table);
  const std::string model = replaced(profile.model(), "gpt", "resnet");
  const ChainProblem problem = read_aceso(model, std::nullopt);
  EXPECT_EQ(problem.chain, (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(problem.state_share, 4);
  EXPECT_EQ(problem.operators[0].algorithms, 2);
  EXPECT_EQ(problem.operators[1].activation_share, 0);
  EXPECT_TRUE(problem.operators[2].begins_layer);
  EXPECT_THAT(complaints_of([&] { read_aceso(model, 2); }), HasSubstr("remove --layers"));
}

TEST(AcesoProfile, IsRefusedWithTheLineOfTheProblem) {
  const Profile profile;
  const auto complaint = [&](std::string_view from, std::string_view to) {
    profile.write("gpt_tiny_mbs2_tp1_algo0.csv", replaced(std::string(kTable), from, to));
    return complaints_of([&] { read_aceso(profile.model(), 3); });
  };
  EXPECT_THAT(complaint("op_name", "name"), HasSubstr("algo0.csv:1: unknown columns 'name,"));
  EXPECT_THAT(complaint(",10,", ",-10,"), HasSubstr("algo0.csv:2: invalid number '-10'"));
  EXPECT_THAT(complaint(",10,", ",nan,"), HasSubstr("invalid number 'nan'"));
  EXPECT_THAT(complaint(",10,20,", ",10,"), HasSubstr("algo0.csv:2: expected 9 values, got 8"));
  EXPECT_THAT(complaint("enc-attention-dropout", "enc-attention-drop"),
              HasSubstr("algo0.csv:4: unknown operator 'enc-attention-drop'"));
  EXPECT_THAT(complaint("enc-attention-dropout", "enc-1st-layernorm"),
              HasSubstr("algo0.csv:4: operator 'enc-1st-layernorm' has no name of its own"));
  EXPECT_THAT(complaint("gpt-post-process", "enc-MLP-gelu"),
              HasSubstr("unknown operator 'gpt-post-process'"));
  profile.write("gpt_tiny_mbs2_tp1_algo0.csv", kTable);
  EXPECT_THAT(complaints_of([&] { read_aceso(profile.model(), std::nullopt); }),
              HasSubstr("set --layers"));
  EXPECT_THAT(complaints_of([&] { read_aceso(profile.model(), 4000); }),
              HasSubstr("more than 4096 operators"));
  profile.write("p2p_intra_node.csv", "1,2\n4,0\n");
  EXPECT_THAT(complaints_of([&] { read_aceso(profile.model(), 3); }), HasSubstr("a rate is 0"));
  EXPECT_FALSE(is_aceso_profile(profile.model() + "er"));
}

}  // namespace
}  // namespace meshwright
