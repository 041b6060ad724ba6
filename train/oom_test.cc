// A rank whose memory is used up in the middle of backward: nobody hangs, nothing of the step is kept, and the repeated
// step, with a smaller part for that rank, is that of one device.
#include <algorithm>
#include <atomic>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "base/clock.h"
#include "base/testing/scratch_folder.h"
#include "comm/testing/run_ranks.h"
#include "train/gradient_reducer.h"
#include "train/local_step.h"
#include "train/testing/cases.h"

namespace remuda::train {
namespace {

using testing::case_loss;
using testing::make_seeded;
using testing::model_cases;
using testing::ModelCase;

/// What one device, that is one thread here, has in tensors.
struct Budget {
  size_t cap = SIZE_MAX;
  std::atomic<size_t> used = 0;  ///< other threads may free what this one took
  size_t peak = 0;
};
thread_local Budget* t_budget = nullptr;  ///< nothing is counted while it is null

/// The bytes before each block.
struct Header {
  Budget* budget;
  size_t size;
  void* start;
};
constexpr size_t kHeader = 64;
static_assert(sizeof(Header) <= kHeader);

void give_back(void* block) {
  if (!block) return;
  Header header;
  std::memcpy(&header, static_cast<char*>(block) - kHeader, sizeof header);
  if (header.budget) header.budget->used -= header.size;
  std::free(header.start);
}

void* take(size_t size) {
  if (Budget* budget = t_budget) {
    if (budget->used + size > budget->cap) C10_THROW_ERROR(OutOfMemoryError, "the device's memory is used up");
    budget->used += size;
    budget->peak = std::max<size_t>(budget->peak, budget->used);
  }
  void* start = std::aligned_alloc(kHeader, (size + 2 * kHeader - 1) / kHeader * kHeader);
  const Header header{t_budget, size, start};
  std::memcpy(start, &header, sizeof header);
  return static_cast<char*>(start) + kHeader;
}

class CappedAllocator final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
  c10::DataPtr allocate(size_t size) override { return make(size); }
  void copy_data(void* to, const void* from, size_t size) const override { default_copy_data(to, from, size); }
#else
  c10::DataPtr allocate(size_t size) const override { return make(size); }
#endif
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }

 private:
  static c10::DataPtr make(size_t size) {
    void* block = size == 0 ? nullptr : take(size);
    return {block, block, &give_back, c10::Device(c10::kCPU)};
  }
};

/// All ranks' tensors come from the capped allocator as long as this lives; its blocks may outlive it.
class CappedMemory {
 public:
  CappedMemory() : before_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(&allocator(), kPriority); }
  ~CappedMemory() { c10::SetCPUAllocator(before_, kPriority); }

 private:
  static constexpr uint8_t kPriority = 200;
  static CappedAllocator& allocator() {
    static CappedAllocator allocator;
    return allocator;
  }
  c10::Allocator* before_;
};

/// Counts, and caps, what this thread takes while it lives.
class OnDevice {
 public:
  explicit OnDevice(Budget& budget) { t_budget = &budget; }
  ~OnDevice() { t_budget = nullptr; }
};

constexpr int kRanks = 3, kStarved = 1, kSamples = 360;
const std::vector<int> kTooMuch{120, 120, 120}, kLess{170, 20, 170};  // samples of each rank

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift);
  return bytes;
}

Samples make_samples(const train::testing::ModelCase& model_case) {
  std::mt19937 random(3);
  const auto draw = [&](size_t count, uint32_t below) {
    std::string values;
    for (size_t i = 0; i < count; ++i) values += static_cast<char>(random() % below);
    return values;
  };
  const auto& input = model_case.input;
  const ScratchFolder folder;
  if (input.context > 0) {
    std::string bytes;
    for (const char token : draw(size_t(kSamples * input.context + 1), uint32_t(model_case.spec.vocabulary)))
      bytes += {token, '\0'};
    const job::DataSpec data{.format = job::DataFormat::tokens, .context = int(input.context)};
    return Samples::open(data, {.tokens = folder.write("tokens", bytes)}, model_case.spec).value();
  }
  const auto height = uint32_t(input.height), width = uint32_t(input.width);
  const std::string images =
      folder.write("images", std::string("\0\0\x08\x03", 4) + big_endian(kSamples) + big_endian(height) +
                                 big_endian(width) + draw(kSamples * height * width, 256));
  const std::string labels =
      folder.write("labels", std::string("\0\0\x08\x01", 4) + big_endian(kSamples) + draw(kSamples, 5));
  return Samples::open({}, {.images = images, .labels = labels}, model_case.spec).value();
}

std::vector<uint64_t> part_of(const std::vector<int>& split, int rank) {
  std::vector<uint64_t> indices(split[rank]);
  std::iota(indices.begin(), indices.end(), std::accumulate(split.begin(), split.begin() + rank, 0));
  return indices;
}

class OutOfMemory : public ::testing::TestWithParam<train::testing::ModelCase> {
 protected:
  struct Peaks {
    size_t forward, backward;
  };

  LossSum loss_of(Model& model, const std::vector<uint64_t>& indices) const {
    return case_loss(GetParam(), model, samples_.gather(indices, torch::kFloat));
  }

  std::vector<torch::Tensor> gradient_of_one_device() const {
    const auto model = make_seeded(GetParam(), torch::kFloat);
    const LossSum whole = loss_of(*model, part_of({kSamples}, 0));
    (whole.sum / whole.weight).backward();
    return testing::gradients(*model);
  }

  /// The most memory that forward and backward of the starved rank's part take.
  Peaks peaks_of(const std::vector<int>& split) const {
    const auto model = make_seeded(GetParam(), torch::kFloat);
    loss_of(*model, {0}).sum.backward();  // gradients are there before the first step
    Budget budget;
    const OnDevice device(budget);
    const LossSum loss = loss_of(*model, part_of(split, kStarved));
    const size_t forward = budget.peak;
    loss.sum.backward();
    return {forward, budget.peak};
  }

  /// One step of three ranks, of which one has so much memory: it fails, and succeeds with other shares.
  void expect_exact_after_failure(const std::vector<torch::Tensor>& expected, size_t cap) const {
    std::vector<std::unique_ptr<Model>> models;
    for (int rank = 0; rank < kRanks; ++rank) models.push_back(make_seeded(GetParam(), torch::kFloat));
    run_ranks(kRanks, comm::ConnectOptions::Transport::shared_memory, [&](comm::Communicator& communicator) {
      const int rank = communicator.rank();
      Model& model = *models[rank];
      Pace pace(1, steady_clock());
      LocalStep local(model, samples_, GetParam().spec, GetParam().padding, pace);
      const std::vector<uint64_t> one{0};
      const auto reducer = GradientReducer::create(communicator, model.parameters(), [&] { local.run_alone(one); },
                                                   {.bucket_bytes = 1024})
                               .value();
      Budget budget;
      if (rank == kStarved) budget.cap = cap;
      for (const bool fits : {false, true}) {
        {
          const OnDevice device(budget);
          local.run(part_of(fits ? kLess : kTooMuch, rank), StepTail(kRanks), *reducer);
        }
        EXPECT_EQ(budget.used, 0u) << "an attempt leaves nothing behind";
        const auto step = reducer->finish();
        ASSERT_TRUE(step) << step.error().message;
        EXPECT_EQ(step->stands, fits);
        EXPECT_EQ(step->totals.first_with(kOutOfMemory), fits ? -1 : kStarved) << "every rank knows who";
      }
      EXPECT_LT(testing::relative_error(testing::gradients(model), expected), 1e-6);
    });
  }

  const Samples samples_ = make_samples(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Models, OutOfMemory, ::testing::ValuesIn(model_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(OutOfMemory, InBackwardCostsTheStepButNotItsResult) {
  const auto expected = gradient_of_one_device();
  const CappedMemory capped;
  const Peaks peaks = peaks_of(kTooMuch);
  ASSERT_GT(peaks.backward, peaks.forward);
  ASSERT_LT(peaks_of(kLess).backward, peaks.forward);
  for (const double late : {0.02, 0.5, 0.98}) {  // where in backward the memory ends
    SCOPED_TRACE(late);
    const auto room = late * static_cast<double>(peaks.backward - peaks.forward);
    expect_exact_after_failure(expected, peaks.forward + static_cast<size_t>(room));
  }
}

}  // namespace
}  // namespace remuda::train
