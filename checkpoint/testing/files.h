// Tests only: files of checkpoints.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

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

}  // namespace remuda::checkpoint
