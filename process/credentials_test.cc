#include "process/credentials.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <unistd.h>

namespace remuda::process {
namespace {

TEST(Credentials, AreThoseThatTheKernelKnows) {
  const auto own = credentials_of(own_process_id());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->uid, static_cast<int>(::getuid()));
  EXPECT_EQ(own->gid, static_cast<int>(::getgid()));
  const int count = ::getgroups(0, nullptr);
  EXPECT_EQ(own->groups.size(), static_cast<size_t>(std::max(0, count)));
}

TEST(Credentials, OfAProcessThatHasEndedAreNone) {
  ProcessId gone = own_process_id();
  gone.start_ticks += 1;
  EXPECT_FALSE(credentials_of(gone));
}

}  // namespace
}  // namespace remuda::process
