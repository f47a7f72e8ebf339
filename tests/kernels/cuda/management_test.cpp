#include "kernels/cuda/management.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshwright::cuda {
namespace {

using testing::HasSubstr;

TEST(GpuState, IsWhatNvmlSays) {
  EXPECT_EQ(state_of_gpu("0000:3b:00.0", FAKE_NVML),
            "driver 580.159.04, SM clock 345 of 1980 MHz, power limit 700 W, 2 NVLinks");
}
TEST(GpuState, LeavesOutWhatNvmlDoesNotKnow) {
  EXPECT_EQ(state_of_gpu("0000:5e:00.0", FAKE_NVML), "driver 580.159.04");
}
TEST(GpuState, SaysWhyNvmlIsNotUsed) {
  EXPECT_THAT(state_of_gpu("0000:3b:00.0", "libno-such-library.so"),
              HasSubstr("cannot load NVML: libno-such-library.so"));
  EXPECT_THAT(state_of_gpu("0000:3b:00.0", "libm.so.6"), HasSubstr("no function 'nvmlInit_v2'"));
}

}  // namespace
}  // namespace meshwright::cuda
