#include "train/norm_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/testing/run_ranks.h"

namespace remuda::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A batch norm of one channel, which notes what it counted.
struct Layer final : NormLayer {
  void count(std::span<const double> moments) override { counted.emplace_back(moments.begin(), moments.end()); }
  std::vector<std::vector<double>> counted;
};

/// Two batch norms, and a pass through both.
struct Rank {
  explicit Rank(comm::Communicator& communicator) : exchange(NormExchange::create(communicator).value()) {
    for (Layer& layer : layers) exchange->add(layer);
    exchange->learn([&] { piece(1); });
  }

  /// A piece of one value; `calls` of its four are made.
  void piece(double value, int calls = 4) {
    gradients.clear();
    if (calls > 0) exchange->add_up_moments(layers[0], {1, value, 0});
    if (calls > 1) exchange->add_up_moments(layers[1], {1, 10 * value, 0});
    if (calls > 2) gradients.push_back(exchange->add_up_gradients(layers[1], {value, 1}));
    if (calls > 3) gradients.push_back(exchange->add_up_gradients(layers[0], {-value, 1}));
  }

  std::array<Layer, 2> layers;
  std::unique_ptr<NormExchange> exchange;
  std::vector<std::vector<double>> gradients;
};

TEST(NormExchange, AddsUpPiecesOfAllRanks) {
  run_ranks(3, comm::kSharedMemory, [](comm::Communicator& communicator) {
    Rank rank(communicator);
    ASSERT_TRUE(rank.exchange->agree());
    for (int step = 0; step < 2; ++step) {
      rank.piece(communicator.rank());
      ASSERT_TRUE(rank.exchange->finish());
      EXPECT_THAT(rank.gradients, ElementsAre(ElementsAre(3, 3), ElementsAre(-3, 3)));
    }
    EXPECT_THAT(rank.layers[0].counted, ElementsAre(ElementsAre(3, 1, 2), ElementsAre(3, 1, 2)));
    EXPECT_THAT(rank.layers[1].counted, ElementsAre(ElementsAre(3, 10, 200), ElementsAre(3, 10, 200)));
  });
}

TEST(NormExchange, ARankWithoutAPieceJoinsThoseOfTheOthersAndCountsThem) {
  run_ranks(3, comm::kSharedMemory, [](comm::Communicator& communicator) {
    Rank rank(communicator);
    ASSERT_TRUE(rank.exchange->agree());
    for (int piece = 0; piece < communicator.rank(); ++piece) rank.piece(communicator.rank() + piece);
    ASSERT_TRUE(rank.exchange->finish());
    EXPECT_THAT(rank.layers[0].counted, ElementsAre(ElementsAre(2, 1.5, 0.5), ElementsAre(1, 3, 0)));
    ASSERT_TRUE(rank.exchange->finish()) << "a step of no samples at all";
  });
}

/// As when it runs out of memory, at any point of a piece.
TEST(NormExchange, ARankThatStopsInTheMiddleOfAPieceKeepsNobodyWaiting) {
  for (int calls = 0; calls < 4; ++calls)
    run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      Rank rank(communicator);
      ASSERT_TRUE(rank.exchange->agree());
      const bool stops = communicator.rank() == 1;
      rank.piece(5, stops ? calls : 4);
      if (!stops) rank.piece(6);
      ASSERT_TRUE(rank.exchange->finish());
      rank.piece(7);
      ASSERT_TRUE(rank.exchange->finish());
      EXPECT_THAT(rank.gradients, ElementsAre(ElementsAre(14, 2), ElementsAre(-14, 2))) << "the next step is whole";
    });
}

/// A rank whose loss is scaled has gradients that are as many times as large, and gets such.
TEST(NormExchange, ScalesOfLossesMayDiffer) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    Rank rank(communicator);
    ASSERT_TRUE(rank.exchange->agree());
    const double scale = communicator.rank() == 0 ? 1 : 8;
    rank.exchange->set_loss_scale(scale);
    rank.exchange->add_up_moments(rank.layers[0], {1, 0, 0});
    rank.exchange->add_up_moments(rank.layers[1], {1, 0, 0});
    EXPECT_THAT(rank.exchange->add_up_gradients(rank.layers[1], {2 * scale, scale}), ElementsAre(4 * scale, 2 * scale));
    ASSERT_TRUE(rank.exchange->finish());
  });
}

TEST(NormExchange, AloneItIsThisRankOnly) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    Rank rank(communicator);
    ASSERT_TRUE(rank.exchange->agree());
    if (communicator.rank() == 0) {
      const NormExchange::Alone alone(rank.exchange.get());
      rank.piece(7);
      EXPECT_THAT(rank.gradients, ElementsAre(ElementsAre(7, 1), ElementsAre(-7, 1)));
    }
    rank.piece(1);
    ASSERT_TRUE(rank.exchange->finish());
    EXPECT_EQ(rank.gradients[0][0], 2);
  });
}

TEST(NormExchange, ModelsThatCallInAnotherOrderAreRefused) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    Rank rank(communicator);
    if (communicator.rank() == 1)
      rank.exchange->learn([&] {
        rank.exchange->add_up_moments(rank.layers[1], {1, 0, 0});
        rank.exchange->add_up_moments(rank.layers[0], {1, 0, 0});
      });
    const auto agreed = rank.exchange->agree();
    ASSERT_FALSE(agreed);
    EXPECT_EQ(agreed.error().message, "the models of rank 1 and rank 0 call their batch norms in another order");
  });
}

/// It had no memory for one sample, but may have to join.
TEST(NormExchange, ARankWhoseTrialWasCutShortTakesTheCallsOfTheOthers) {
  for (const int starved : {0, 1})
    run_ranks(2, comm::kSharedMemory, [&](comm::Communicator& communicator) {
      Rank rank(communicator);
      const bool short_of_it = communicator.rank() == starved;
      if (short_of_it) rank.exchange->learn([&] { rank.exchange->add_up_moments(rank.layers[0], {1, 0, 0}); });
      ASSERT_TRUE(rank.exchange->agree());
      if (!short_of_it) rank.piece(3);
      ASSERT_TRUE(rank.exchange->finish());
      EXPECT_EQ(rank.layers[0].counted.size(), 1u) << "with a piece and without";
    });
}

TEST(NormExchange, AnotherWayThroughTheModelIsRefused) {
  run_ranks(1, comm::ConnectOptions::Transport::automatic, [](comm::Communicator& communicator) {
    Rank rank(communicator);
    ASSERT_TRUE(rank.exchange->agree());
    EXPECT_THROW(rank.exchange->add_up_moments(rank.layers[1], {1, 0, 0}), std::runtime_error);
  });
}

TEST(NormExchange, ARankThatIsGoneIsNamed) {
  run_ranks(2, comm::kSharedMemory, [](comm::Communicator& communicator) {
    Rank rank(communicator);
    ASSERT_TRUE(rank.exchange->agree());
    if (communicator.rank() == 1) return;
    EXPECT_THROW(rank.piece(1), std::runtime_error);
    const auto finished = rank.exchange->finish();
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().kind, ErrorKind::lost_peer);
    EXPECT_EQ(finished.error().peer, 1);
    EXPECT_FALSE(rank.exchange->outcome());
  });
}

TEST(NormExchange, ARankThatIsSilentIsNamedInTime) {
  run_ranks(
      2, comm::kSharedMemory,
      [](comm::Communicator& communicator) {
        Rank rank(communicator);
        ASSERT_TRUE(rank.exchange->agree());
        rank.exchange->set_timeout(0.1);
        if (communicator.rank() == 0) {
          rank.piece(1, 0);
          const auto finished = rank.exchange->finish();
          ASSERT_FALSE(finished);
          EXPECT_THAT(finished.error().message, HasSubstr("rank 1"));
        }
        ASSERT_TRUE(communicator.barrier(7));
      },
      20);
}

}  // namespace
}  // namespace remuda::train
