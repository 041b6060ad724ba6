#include <algorithm>
#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>

#include "parallel/parallel.h"
#include "parallel/testing/ranks.h"

namespace remuda::parallel {
namespace {

using ::testing::HasSubstr;
using namespace testing;

DataLoader::Options loading(int64_t batch, int workers = 0) {
  DataLoader::Options options;
  options.batch = batch;
  options.workers = workers;
  return options;
}

/// Data that names the sample and the epoch, and a target of another type and shape.
DataLoader::Sample named(int64_t index, int64_t epoch) {
  return {torch::tensor({{float(index), float(epoch)}}), torch::tensor(100 * epoch + index, torch::kLong)};
}

/// The samples of `batches` batches of 5 out of 12, whole, as the ranks have them together.
std::vector<std::vector<int64_t>> batches_of(const std::vector<double>& shares, int workers, int batches) {
  std::vector<std::vector<torch::Tensor>> parts(shares.size());
  run_ranks(int(shares.size()), [&](const Group& group) {
    auto model = make_linear();
    Options options;
    options.shares = shares;
    DataParallel parallel(group, *model, options);
    DataLoader loader(group, 12, named, loading(5, workers));
    for (int i = 0; i < batches; ++i) {
      EXPECT_EQ(loader.epoch(), 1 + i / 3) << "two batches of five, one of two";
      const auto [part, data, target] = loader.next(parallel);
      ASSERT_EQ(data.sizes(), (std::vector<int64_t>{part.size, 1, 2}));
      ASSERT_EQ(target.sizes(), std::vector<int64_t>{part.size});
      EXPECT_EQ(target.scalar_type(), torch::kLong);
      EXPECT_TRUE(target.eq(data.select(2, 1).view({-1}) * 100 + data.select(2, 0).view({-1})).all().item<bool>());
      parts[size_t(group.rank())].push_back(target);
      parallel.begin(0);
      parallel.step(0.1);
    }
  });
  std::vector<std::vector<int64_t>> whole;
  for (int i = 0; i < batches; ++i) {
    std::vector<torch::Tensor> all;
    for (const auto& rank : parts) all.push_back(rank[size_t(i)]);
    const auto joined = torch::cat(all);
    whole.emplace_back(joined.data_ptr<int64_t>(), joined.data_ptr<int64_t>() + joined.numel());
  }
  return whole;
}

TEST(DataLoader, TheSameSamplesInTheSameOrderForAnyNumberOfRanksAndWorkers) {
  const auto expected = batches_of({1}, 0, 7);
  for (const int epoch : {1, 2}) {
    std::vector<int64_t> all;
    for (int i = 3 * (epoch - 1); i < 3 * epoch; ++i) all.insert(all.end(), expected[i].begin(), expected[i].end());
    EXPECT_FALSE(std::ranges::is_sorted(all)) << "shuffled";
    std::ranges::sort(all);
    for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(all.at(size_t(i)), 100 * epoch + i) << "each once in an epoch";
  }
  EXPECT_EQ(batches_of({1}, 2, 7), expected);
  EXPECT_EQ(batches_of({2, 1}, 0, 7), expected);
  EXPECT_EQ(batches_of({1, 0, 3}, 2, 7), expected);
}

TEST(DataLoader, MayKeepTheOrderOfTheSamples) {
  run_ranks(1, [](const Group& group) {
    auto model = make_linear();
    DataParallel parallel(group, *model);
    DataLoader::Options options = loading(4);
    options.shuffle = false;
    DataLoader loader(group, 6, named, options);
    const auto first = loader.next(parallel).target, rest = loader.next(parallel).target,
               second = loader.next(parallel).target;
    EXPECT_TRUE(first.equal(torch::tensor({100, 101, 102, 103}, torch::kLong)));
    EXPECT_TRUE(rest.equal(torch::tensor({104, 105}, torch::kLong)));
    EXPECT_TRUE(second.equal(torch::tensor({200, 201, 202, 203}, torch::kLong)));
    EXPECT_TRUE(first.equal(torch::tensor({100, 101, 102, 103}, torch::kLong))) << "it keeps its memory";
  });
}

TEST(DataLoader, WorkersMakeTheNextBatches) {
  at::set_num_threads(2);  // what threads of this process begin with
  std::atomic<int> made = 0;
  std::mutex mutex;
  std::vector<int> threads;
  const auto make = [&](int64_t index, int64_t epoch) {
    const std::lock_guard lock(mutex);
    threads.push_back(at::get_num_threads());
    ++made;
    return named(index, epoch);
  };
  run_ranks(1, [&](const Group& group) {
    auto model = make_linear();
    DataParallel parallel(group, *model);
    DataLoader loader(group, 100, make, loading(10, 2));
    loader.next(parallel);
    while (made < 1 + 30) std::this_thread::yield();  // the first to learn the shapes; two batches ahead
    EXPECT_EQ(std::ranges::count(threads, 1), std::ssize(threads)) << "each sample is made on one thread";
  });
}

TEST(DataLoader, SamplesOfOtherShapesAreRefused) {
  const auto refused = [](const DataLoader::Sample& other) {
    return refusal([&] {
      const Group group = alone();
      auto model = make_linear();
      DataParallel parallel(group, *model);
      const auto make = [&](int64_t index, int64_t epoch) { return index == 1 ? other : named(index, epoch); };
      DataLoader(group, 2, make, loading(2)).next(parallel);
    });
  };
  const DataLoader::Sample good = named(1, 1);
  EXPECT_EQ(refused(good), "");
  EXPECT_EQ(refused({torch::zeros({3}), good.target}),
            "the data of sample 1 is Float of shape [3]; it must be like that of sample 0: Float of shape [1, 2]");
  EXPECT_EQ(refused({good.data, torch::zeros({})}),
            "the target of sample 1 is Float of shape []; it must be like that of sample 0: Long of shape []");
  EXPECT_THAT(refused({good.data, {}}), HasSubstr("the target of sample 1 is missing"));
}

TEST(DataLoader, WhatMakeThrowsIsAnError) {
  EXPECT_THAT(refusal([] {
                const Group group = alone();
                auto model = make_linear();
                DataParallel parallel(group, *model);
                const auto make = [](int64_t index, int64_t epoch) {
                  if (index == 3) throw std::runtime_error("the disk is gone");
                  return named(index, epoch);
                };
                DataLoader(group, 8, make, loading(8, 1)).next(parallel);
              }),
              HasSubstr("cannot make a sample: the disk is gone"));
}

TEST(DataLoader, RanksThatDifferAreRefusedOnAll) {
  const auto sentence = [](int64_t samples, const DataLoader::Options& rank1) {
    std::vector<std::string> said(2);
    run_ranks(2, [&](const Group& group) {
      said[size_t(group.rank())] = refusal(
          [&] { DataLoader(group, group.rank() == 1 ? samples : 12, named, group.rank() == 1 ? rank1 : loading(5)); });
    });
    EXPECT_EQ(said[0], said[1]);
    return said[0];
  };
  DataLoader::Options other = loading(5);
  EXPECT_EQ(sentence(12, other), "");
  EXPECT_EQ(sentence(11, other),
            "DataLoader's number of samples is 11 on rank 1 and 12 on rank 0; it must be the same on all ranks");
  EXPECT_THAT(sentence(12, loading(6)), HasSubstr("batch is 6 on rank 1 and 5 on rank 0"));
  other.seed = 9;
  EXPECT_THAT(sentence(12, other), HasSubstr("seed is 9 on rank 1 and 1 on rank 0"));
  EXPECT_EQ(sentence(12, loading(5, 3)), "") << "each has its own number of workers";
}

TEST(DataLoader, WrongOptionsAreRefused) {
  EXPECT_THAT(refusal([] { DataLoader(alone(), 0, named, loading(1)); }), HasSubstr("no samples to load"));
  EXPECT_THAT(refusal([] { DataLoader(alone(), 1, named, loading(0)); }),
              HasSubstr("batch is 0; it must be at least 1"));
  EXPECT_THAT(refusal([] { DataLoader(alone(), 1, named, loading(1, -1)); }), HasSubstr("workers are -1"));
  DataLoader loader(alone(), 1, named, loading(1));
  const DataLoader moved(std::move(loader));
  EXPECT_EQ(moved.epoch(), 1);
  // NOLINTNEXTLINE(bugprone-use-after-move): what is tested
  EXPECT_THAT(refusal([&] { static_cast<void>(loader.epoch()); }), HasSubstr("was moved from"));
}

}  // namespace
}  // namespace remuda::parallel
