// From a matrix to a machine: what every importer of a matrix has in common. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/inventory.h"
#include "recorded/matrix.h"

namespace remuda::recorded {

struct Machine {
  Inventory inventory;
  std::vector<std::string> ids;  ///< for each name of the matrix: the id of its device, or its network card's name
  std::vector<bool> is_device;
};

/// The devices and network cards of a matrix, with what its columns say, and its notes; no links. GPUs are counted in
/// the order of the header.
Machine machine_of(const Matrix& matrix, const char* vendor);

/// Puts what a word says into `link`: PIX or SYS into path, NV12 or XG2 into fabric and fabric_links, "XGMI/15" into
/// fabric and weight. False for a word that is none of those, which then is the link's label.
bool read_link_word(std::string_view word, Link& link);

/// Adds a link for each pair of which the matrix says something, and notes unknown words and pairs of which it
/// says one thing in one direction and another in the other: their path stays missing. `otherwise` is the fabric of two
/// devices whose word names none: Fabric::none where the source lists all direct links.
void add_links(const Matrix& matrix, const Reading<Fabric>& otherwise, Machine& machine);

/// Gives the inventory its host (the stem of text.where) and its source ("`kind`: comment").
void finish(const Text& text, std::string_view kind, Inventory& inventory);

/// Adds a note that is not there yet.
void add_note(std::string note, Inventory& inventory);

/// A NUMA node: "1" or "[1]". "0-1", "N/A" and the like are missing, with a sentence.
Reading<int> numa_reading(std::string_view text);
/// A list of CPUs: "0-3,8". Empty and wrong ones are missing, with a sentence.
Reading<std::vector<int>> cores_reading(std::string_view text);

}  // namespace remuda::recorded
