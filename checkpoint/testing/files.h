// Tests only: files of checkpoints.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>
#include <xxhash.h>

#include "base/check.h"
#include "base/file.h"
#include "checkpoint/manifest.h"
#include "weights/writer.h"

namespace remuda::checkpoint {

/// A safetensors file of one-dimensional float tensors.
inline void write_pieces(const std::string& path, const std::map<std::string, std::vector<float>>& pieces) {
  weights::Header header;
  for (const auto& [name, values] : pieces)
    header.tensors.push_back({.name = name, .type = weights::DType::f32, .shape = {values.size()}});
  auto writer = weights::Writer::create(PendingFile::create(path).value(), std::move(header)).value();
  for (const auto& tensor : writer.header().tensors)
    (void)writer.append(std::as_bytes(std::span(pieces.at(tensor.name))));
  (void)writer.commit();
}

/// What a manifest of the newest version says of it.
inline StoredFile describe(const std::string& folder, const std::string& name) {
  const std::string text = read_text((std::filesystem::path(folder) / name).string()).value();
  StoredFile file{name, text.size(), {}};
  for (size_t at = 0; at < text.size(); at += kSummedBytes)
    file.sums.push_back(XXH3_64bits(&text[at], std::min<size_t>(kSummedBytes, text.size() - at)));
  return file;
}

/// Changes one bit of its byte `at`, counted from the end where that is negative, in place.
inline void flip_bit(const std::string& path, long at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto from = at < 0 ? std::ios::end : std::ios::beg;
  file.seekg(at, from);
  const int byte = file.get();
  file.seekp(at, from);
  file.put(char(byte ^ 1)).flush();
  REMUDA_CHECK(file.good(), "it has that byte");
}

}  // namespace remuda::checkpoint
