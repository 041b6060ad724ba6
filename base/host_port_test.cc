#include "base/host_port.h"

#include <gtest/gtest.h>

namespace remuda {
namespace {

TEST(HostPort, IsReadInEachOfItsForms) {
  EXPECT_EQ(parse_host_port("node1:29600"), (HostPort{"node1", 29600}));
  EXPECT_EQ(parse_host_port("[::1]:1"), (HostPort{"::1", 1}));
  EXPECT_EQ(parse_host_port(":29600"), (HostPort{"", 29600}));
  EXPECT_EQ(parse_host_port("29600"), (HostPort{"", 29600}));
}

TEST(HostPort, IsNoOtherText) {
  for (const char* text : {"", "node1", "node1:", "node1:0", "node1:65536", "node1:-1", "::1:29600", "a b:1", "[]:1",
                           "http://node1:80", "node1:29600 "})
    EXPECT_FALSE(parse_host_port(text)) << text;
}

}  // namespace
}  // namespace remuda
