#include "executor/launch/job_environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;
using Values = std::map<std::string, std::string>;

std::optional<JobPlace> place_with(const Values& values) {
  return job_place_from([&](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
}
std::string refusal_of(const Values& values) {
  try {
    place_with(values);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(JobEnvironment, IsEmptyOutsideAJob) {
  EXPECT_FALSE(place_with({}).has_value());
  EXPECT_FALSE(place_with({{"MASTER_ADDR", "10.0.0.1"}}).has_value());
}

// torchrun's own store listens on MASTER_PORT.
TEST(JobEnvironment, UsesThePortNextToTheTorchrunStore) {
  const Values values{{"RANK", "5"},
                      {"WORLD_SIZE", "8"},
                      {"LOCAL_RANK", "1"},
                      {"LOCAL_WORLD_SIZE", "4"},
                      {"MASTER_ADDR", "node0"},
                      {"MASTER_PORT", "29500"},
                      {"TORCHELASTIC_RUN_ID", "none"}};
  EXPECT_EQ(*place_with(values), (JobPlace{.rank = 5,
                                           .ranks = 8,
                                           .local_rank = 1,
                                           .host = "node0",
                                           .port = 29501,
                                           .started_by = "torchrun"}));
}

TEST(JobEnvironment, PrefersRankToTheVariablesOfMpirun) {
  const Values values{
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"MASTER_PORT", "4000"}};
  const JobPlace place = *place_with(values);
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.host, "127.0.0.1");
  EXPECT_EQ(place.port, 4000);
}

TEST(JobEnvironment, RecognizesMpirunOnOneHost) {
  const Values values{{"OMPI_COMM_WORLD_RANK", "3"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                      {"PMIX_NAMESPACE", "job7"}};
  const JobPlace place = *place_with(values);
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.started_by, "mpirun");
  EXPECT_EQ(place.host, "127.0.0.1");
  Values other = values;
  other["OMPI_COMM_WORLD_RANK"] = "0";
  EXPECT_EQ(place_with(other)->port, place.port);  // equal on all processes of the job
  other["PMIX_NAMESPACE"] = "job8";
  EXPECT_NE(place_with(other)->port, place.port);
}

TEST(JobEnvironment, RequiresTheAddressOfRankZeroOnSeveralHosts) {
  EXPECT_THAT(refusal_of({{"OMPI_COMM_WORLD_RANK", "3"},
                          {"OMPI_COMM_WORLD_SIZE", "4"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
              HasSubstr("MASTER_ADDR: must be set: only 2 of 4 processes"));
}

TEST(JobEnvironment, UsesTheFirstSlurmNode) {
  const JobPlace place = *place_with({{"SLURM_PROCID", "9"},
                                      {"SLURM_NTASKS", "16"},
                                      {"SLURM_LOCALID", "1"},
                                      {"SLURM_JOB_NODELIST", "gpu[003-004]"}});
  EXPECT_EQ(place.host, "gpu003");
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.started_by, "srun");
}

TEST(JobEnvironment, ParsesNodeLists) {
  const Values first_nodes{{"", ""},
                           {"one", "one"},
                           {"b2,a1", "b2"},
                           {"gpu[003-004,7],x1", "gpu003"},
                           {"gpu[7,9]", "gpu7"},
                           {"rack[1-2]-n[05-08],x", "rack1-n05"},
                           {"cut[1-", "cut1"}};
  for (const auto& [list, first] : first_nodes) EXPECT_EQ(first_node_of(list), first) << list;
}

TEST(JobEnvironment, RejectsContradictoryVariables) {
  EXPECT_THAT(refusal_of({{"RANK", "0"}}), HasSubstr("WORLD_SIZE: must be set together with RANK"));
  EXPECT_THAT(refusal_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("RANK: must be less than WORLD_SIZE (2), got 2"));
  EXPECT_THAT(refusal_of({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("invalid value '-1': expected a whole number"));
  EXPECT_THAT(refusal_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "x"}}),
              HasSubstr("MASTER_PORT: invalid value 'x'"));
  EXPECT_THAT(refusal_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "0"}}),
              HasSubstr("MASTER_PORT: must be at least 1, got 0"));
}

}  // namespace
}  // namespace meshwright
