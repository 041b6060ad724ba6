#include "data/cifar.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>

namespace remuda::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPixels = size_t{3} * 32 * 32;

struct Layout {
  int classes;
  size_t label_bytes;
  size_t record() const { return label_bytes + kPixels; }
};

constexpr Layout kCifar10{10, 1}, kCifar100{100, 2};

/// The first label of the file that is none of its kind's classes; the file's end where there is none.
size_t first_wrong_label(std::span<const std::byte> file, const Layout& layout) {
  size_t at = layout.label_bytes - 1;
  while (at < file.size() && std::to_integer<int>(file[at]) < layout.classes) at += layout.record();
  return std::min(at, file.size());
}

/// By its size; where both fit, by its labels.
Result<Layout> layout_of(std::span<const std::byte> file, const std::string& path) {
  std::vector<Layout> fit;
  for (const Layout& layout : {kCifar10, kCifar100})
    if (!file.empty() && file.size() % layout.record() == 0) fit.push_back(layout);
  if (fit.empty())
    return usage_error(fmt::format(
        "{} is not a CIFAR file: it has {} bytes, neither a multiple of {} (CIFAR-10) nor of {} (CIFAR-100)", path,
        file.size(), kCifar10.record(), kCifar100.record()));
  for (const Layout& layout : fit)
    if (first_wrong_label(file, layout) == file.size()) return layout;
  const size_t wrong = first_wrong_label(file, fit[0]);
  return usage_error(fmt::format("{} is not a CIFAR file: the label of record {} is {}; CIFAR-{} has labels below {}",
                                 path, wrong / fit[0].record(), std::to_integer<int>(file[wrong]), fit[0].classes,
                                 fit[0].classes));
}

}  // namespace

std::vector<std::string> cifar_files(const std::string& path, Split split) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  const bool train = split == Split::train;
  std::vector<std::string> batches, whole;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (train && name.starts_with("data_batch_") && name.ends_with(".bin")) batches.push_back(entry.path().string());
    if (name == (train ? "train.bin" : "test_batch.bin") || (!train && name == "test.bin"))
      whole.push_back(entry.path().string());
  }
  std::ranges::sort(batches);
  return batches.empty() ? whole : batches;
}

Result<CifarSet> CifarSet::open(const std::string& path, Split split) {
  const std::vector<std::string> paths = cifar_files(path, split);
  if (paths.empty())
    return usage_error(fmt::format("{} has no CIFAR files to {}; those of the \"binary version\" are read", path,
                                   split == Split::train
                                       ? "train on (data_batch_1.bin ... of CIFAR-10, train.bin of CIFAR-100)"
                                       : "test with (test_batch.bin of CIFAR-10, test.bin of CIFAR-100)"));
  CifarSet set;
  for (const std::string& file : paths) {
    REMUDA_ASSIGN(const Fd fd, open_for_reading(file));
    REMUDA_ASSIGN(MappedFile mapped, MappedFile::map(fd.get(), file));
    REMUDA_ASSIGN(const Layout layout, layout_of(mapped.bytes(), file));
    if (&file == &paths[0]) set.classes_ = layout.classes;
    if (layout.classes != set.classes_)
      return usage_error(
          fmt::format("{} is of CIFAR-{}, but {} of CIFAR-{}", file, layout.classes, paths[0], set.classes_));
    set.first_.push_back(set.size() + mapped.bytes().size() / layout.record());
    set.files_.push_back(std::move(mapped));
  }
  return set;
}

std::span<const std::byte> CifarSet::record(size_t index) const {
  const auto next = std::ranges::upper_bound(first_, index);
  const auto file = size_t(next - first_.begin()) - 1;
  const size_t bytes = label_bytes() + kPixels;
  return files_[file].bytes().subspan((index - first_[file]) * bytes, bytes);
}

Result<void> CifarSet::read(size_t index, std::span<uint8_t> values) const {
  std::memcpy(values.data(), record(index).data() + label_bytes(), kPixels);
  return {};
}

}  // namespace remuda::data
