#include "peer/ep/ep_host.hpp"

namespace kiln::peer {
namespace {

using ep_registration = ep_test;

TEST_F(ep_registration, comes_goes_and_comes_again) {
  const plugin_host& host = ep_host();
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(host.devices().size(), 1u);
    {
      const plugin_session own(host, ep_dense().bytes(), {}, {{"session.disable_cpu_ep_fallback", "1"}});
      EXPECT_EQ(own.run(ep_rows(2)).size(), 1u);
    }
    host.remove();
    EXPECT_TRUE(host.devices().empty());
    host.add();
  }
}

}  // namespace
}  // namespace kiln::peer
