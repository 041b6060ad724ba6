#include "base/listener.h"

#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remuda {
namespace {

using testing::HasSubstr;

TEST(Listen, TakesAFreePortAndRefusesOneInUse) {
  const auto first = listen_on_loopback(0);
  ASSERT_TRUE(first);
  EXPECT_GT(first->port, 0);
  const auto second = listen_on_loopback(first->port);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::usage);
  EXPECT_THAT(second.error().message, HasSubstr(fmt::format("port {}: Address already in use", first->port)));
}

TEST(FreePort, IsNoneThatTheKernelGivesToConnections) {
  int first = 0, last = 0;
  ASSERT_TRUE(std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last);
  if (first <= 20000 && last >= 65535) GTEST_SKIP() << "this host's connections have all ports from " << first;
  for (int i = 0; i < 50; ++i) {
    const auto port = free_port();
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_TRUE(*port < first || *port > last) << *port;
    EXPECT_TRUE(listen_on_loopback(*port)) << *port;
  }
}

}  // namespace
}  // namespace remuda
