#include "data/foreign.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <unistd.h>

#include "base/file.h"

namespace remuda::data {
namespace {

using namespace std::string_view_literals;

struct Kind {
  std::string_view magic;
  size_t offset;
  const char* name;
};

// From each format's own description; the numbers are those of file(1).
constexpr std::array kKinds{
    Kind{"\x89PNG\r\n"sv, 0, "a PNG image"},
    Kind{"\xff\xd8\xff"sv, 0, "a JPEG image"},
    Kind{"GIF8"sv, 0, "a GIF image"},
    Kind{"RIFF"sv, 0, "a RIFF file (WebP, WAV)"},
    Kind{"\x93NUMPY"sv, 0, "a NumPy file"},
    Kind{"PK\x03\x04"sv, 0, "a ZIP archive (torch.save() and NumPy's .npz are)"},
    Kind{"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46"sv, 0, "a file of an old torch.save()"},
    Kind{"\x89HDF"sv, 0, "an HDF5 file"},
    Kind{"PAR1"sv, 0, "a Parquet file"},
    Kind{"ARROW1"sv, 0, "an Arrow file"},
    Kind{"ustar"sv, 257, "a tar archive"},
    Kind{"<!DOCTYPE html"sv, 0, "an HTML page"},
    Kind{"<!doctype html"sv, 0, "an HTML page"},
    Kind{"<html"sv, 0, "an HTML page"},
    Kind{"version https://git-lfs."sv, 0, "a pointer of Git LFS, not the file itself"},
};

constexpr size_t kHead = 512;
constexpr size_t kLeastText = 16;

bool is_text(std::string_view head) {
  const auto printable = [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t'; };
  return head.size() >= kLeastText && std::ranges::all_of(head, printable);
}

}  // namespace

std::string foreign_kind(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return "a folder";
  const auto fd = open_for_reading(path);
  if (!fd) return "";
  char bytes[kHead];
  const ssize_t got = ::pread(fd->get(), bytes, sizeof bytes, 0);
  const std::string_view head(bytes, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  for (const Kind& kind : kKinds)
    if (head.size() > kind.offset && head.substr(kind.offset).starts_with(kind.magic)) return kind.name;
  return is_text(head) ? "text (CSV, JSON or the like)" : "";
}

Result<void> refuse_foreign(const std::string& path) {
  const std::string kind = foreign_kind(path);
  if (kind.empty()) return {};
  return usage_error(fmt::format(
      "{} is {}; training reads folders and tar files of JPEG and PNG images (data.format = \"images\"), IDX files of "
      "images and labels, as MNIST's (\"idx\"), CIFAR's binary files (\"cifar\"), and files of uint16 tokens "
      "(\"tokens\"); docs/train.md shows how to write them from Python",
      path, kind));
}

}  // namespace remuda::data
