#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "data/loader.h"
#include "parallel/group_state.h"
#include "parallel/parallel.h"
#include "parallel/raise.h"
#include "train/agreement.h"
#include "train/error_text.h"
#include "train/labels.h"
#include "train/process_tuning.h"
#include "train/torch_compat.h"

namespace remuda::parallel {
namespace {

constexpr int kStepsAhead = 2;

std::string text_of(const torch::Tensor& tensor) {
  if (!tensor.defined()) return "missing";
  return train::shape_text(tensor) + (tensor.device().is_cpu() ? "" : " on " + tensor.device().str());
}

/// What must be the same on all ranks.
struct LoaderTerms {
  int64_t samples = 0, batch = 0, shuffle = 0;
  uint64_t seed = 0;
};

template <typename T>
void refuse_other(const char* name, T LoaderTerms::* value, const std::vector<LoaderTerms>& all) {
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank].*value != all[0].*value)
      raise_usage(fmt::format("DataLoader's {} is {} on rank {} and {} on rank 0; it must be the same on all ranks",
                              name, all[rank].*value, rank, all[0].*value));
}

/// Collective: a rank with wrong values is refused by all, so that nobody waits for it.
void check_terms(comm::Communicator& communicator, const LoaderTerms& mine) {
  const std::vector<LoaderTerms> all = or_raise(train::gather_all(communicator, mine, train::label::kLoader));
  refuse_other("number of samples", &LoaderTerms::samples, all);
  refuse_other("batch", &LoaderTerms::batch, all);
  refuse_other("shuffle", &LoaderTerms::shuffle, all);
  refuse_other("seed", &LoaderTerms::seed, all);
  if (mine.samples < 1) raise_usage("DataLoader has no samples to load");
  if (mine.batch < 1) raise_usage(fmt::format("DataLoader's batch is {}; it must be at least 1", mine.batch));
}

}  // namespace

/// What the data or target of all samples is like.
struct Form {
  explicit Form(const torch::Tensor& first) {
    if (!first.defined()) raise_usage("sample 0 of DataLoader lacks its data or its target");
    sizes = first.sizes().vec();
    type = first.scalar_type();
  }
  size_t bytes() const { return size_t(c10::multiply_integers(sizes)) * c10::elementSize(type); }
  bool fits(const torch::Tensor& tensor) const {
    return tensor.defined() && tensor.device().is_cpu() && tensor.scalar_type() == type &&
           tensor.sizes() == torch::IntArrayRef(sizes);
  }
  /// `count` of them, one after the other, in this memory, which the tensor keeps.
  torch::Tensor of(const std::shared_ptr<std::byte[]>& memory, int64_t count) const {
    std::vector<int64_t> all{count};
    all.insert(all.end(), sizes.begin(), sizes.end());
    return torch::from_blob(memory.get(), all, [memory](void*) {}, type);
  }

  std::vector<int64_t> sizes;
  torch::ScalarType type{};
};

/// The samples of a program, as bytes.
class MadeSamples final : public data::Dataset {
 public:
  using Make = std::function<DataLoader::Sample(int64_t, int64_t)>;

  MadeSamples(int64_t size, const Make& make) : MadeSamples(size, make, made(make, 0, 1)) {}

  const Form& data_form() const { return data_; }
  const Form& target_form() const { return target_; }

  size_t size() const override { return size_t(size_); }
  size_t input_bytes() const override { return data_.bytes(); }
  size_t target_bytes() const override { return target_.bytes(); }
  Result<void> write(uint64_t index, uint64_t epoch, std::span<std::byte> input,
                     std::span<std::byte> target) const override {
    try {
      const DataLoader::Sample sample = made(make_, int64_t(index), int64_t(epoch));
      REMUDA_TRY(copy(sample.data, data_, fmt::format("data of sample {}", index), input));
      return copy(sample.target, target_, fmt::format("target of sample {}", index), target);
    } catch (const std::exception& error) {
      return failed(fmt::format("cannot make a sample: {}", train::sentence_of(error)));
    }
  }

 private:
  MadeSamples(int64_t size, Make make, const DataLoader::Sample& first)
      : size_(size), make_(std::move(make)), data_(first.data), target_(first.target) {}

  /// The same bits on every thread.
  static DataLoader::Sample made(const Make& make, int64_t index, int64_t epoch) {
    const torch::NoGradGuard no_gradient;
    const train::OneThreadHere one_thread;
    return make(index, epoch);
  }

  static Result<void> copy(const torch::Tensor& from, const Form& form, const std::string& what,
                           std::span<std::byte> into) {
    if (!form.fits(from))
      return usage_error(fmt::format("the {} is {}; it must be like that of sample 0: {}", what, text_of(from),
                                     text_of(torch::empty(form.sizes, form.type))));
    if (!into.empty()) std::memcpy(into.data(), from.contiguous().data_ptr(), into.size());
    return {};
  }

  int64_t size_;
  Make make_;
  Form data_, target_;
};

struct DataLoader::Impl {
  Impl(int64_t samples, const MadeSamples::Make& make, const Options& its_options)
      : options(its_options),
        set(samples, make),
        loader(set,
               options.shuffle ? data::SampleOrder::shuffled(set.size(), options.seed)
                               : data::SampleOrder::in_order(set.size()),
               options.workers) {}

  int64_t size_at(uint64_t at) const {
    return std::min<int64_t>(options.batch, int64_t(set.size()) - int64_t(at % set.size()));
  }

  const Options options;
  const MadeSamples set;
  data::Loader loader;
  uint64_t position = 0;  ///< of the next batch
};

DataLoader::DataLoader(const Group& group, int64_t samples, std::function<Sample(int64_t, int64_t)> make,
                       const Options& options) {
  group.state()->require_no_step("DataLoader's constructor");
  check_terms(*group.state()->communicator, {samples, options.batch, options.shuffle, options.seed});
  constexpr int kMostWorkers = 256;
  if (options.workers < 0 || options.workers > kMostWorkers)
    raise_usage(fmt::format("DataLoader's workers are {}; there can be 0 to {}", options.workers, kMostWorkers));
  impl_ = std::make_unique<Impl>(samples, make, options);
}
DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;
DataLoader::~DataLoader() = default;

DataLoader::Impl& DataLoader::impl() const {
  if (!impl_) raise_usage("this DataLoader was moved from; use the one that it was moved to");
  return *impl_;
}

int64_t DataLoader::epoch() const { return 1 + int64_t(impl().position / impl().set.size()); }

DataLoader::Batch DataLoader::next(DataParallel& parallel) {
  Impl& self = impl();
  const auto range_of = [](uint64_t position, const Part& part) {
    return data::Range{position + uint64_t(part.begin), uint64_t(part.size)};
  };
  const Part part = parallel.my_part(self.size_at(self.position));
  const data::Range mine = range_of(self.position, part);
  self.position += uint64_t(self.size_at(self.position));
  std::vector<data::Range> ahead;
  uint64_t after = self.position;
  for (int i = 0; i < kStepsAhead && self.options.workers > 0; ++i) {
    ahead.push_back(range_of(after, parallel.part_of(self.size_at(after))));
    after += uint64_t(self.size_at(after));
  }
  const data::LoadedBatch loaded = or_raise(self.loader.take(mine, ahead));
  return {part, self.set.data_form().of(loaded.inputs, part.size),
          self.set.target_form().of(loaded.targets, part.size)};
}

}  // namespace remuda::parallel
