// Every recorded machine of testdata/machines: against its golden inventory, against a naive reading of its text, and
// cut, shuffled and re-spaced.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <sstream>

#include "base/env.h"
#include "base/file.h"
#include "base/text.h"
#include "recorded/import.h"

namespace remuda::recorded {
namespace {

namespace fs = std::filesystem;

const fs::path kMachines = fs::path(REMUDA_TESTDATA) / "machines";

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kMachines))
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

std::string read(const fs::path& path) { return read_text(path.string()).value(); }

/// What remuda prints of a link: the rule of topology/label.h.
std::string label(const Link& link) {
  if (!link.label.empty()) return link.label;
  const Fabric fabric = link.fabric.value_or(Fabric::none);
  if (fabric == Fabric::nvlink) return fmt::format("NV{}", link.fabric_links.value());
  if (fabric == Fabric::xgmi)
    return link.fabric_links.has_value() ? fmt::format("XG{}", link.fabric_links.value()) : "XGMI";
  return link.path.has_value() ? to_string(link.path.value()) : "?";
}

/// A word for each pair, in both directions, by the names of the matrices: GPU3, mlx5_0.
using Cells = std::map<std::pair<std::string, std::string>, std::string>;

Cells printed_cells(const Inventory& inventory) {
  std::map<std::string, std::string> names;
  for (const Device& device : inventory.devices) names[device.id] = fmt::format("GPU{}", device.index);
  for (const Nic& nic : inventory.nics) names[nic.name] = nic.name;
  Cells cells;
  for (const Link& link : inventory.links)
    cells[{names.at(link.a), names.at(link.b)}] = cells[{names.at(link.b), names.at(link.a)}] = label(link);
  std::erase_if(cells, [](const auto& cell) { return cell.second == "?"; });
  return cells;
}

/// Deliberately naive: the first line with a GPU1 is the header, each line that begins with one of its names a row,
/// and a word is a cell. Good for whole, well-formed files only.
Cells naive_cells(const std::string& text) {
  const size_t links = text.find("Link Type between");
  std::istringstream lines(links == std::string::npos ? text : text.substr(links));
  std::vector<std::string> names;
  Cells cells;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# nvidia-smi topo -p2p")) break;
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (names.empty() && line.find("GPU1") != std::string::npos) {
      for (std::string word = name; words && word != "CPU" && word != "NUMA" && word != "CPUNODE"; words >> word)
        names.push_back(word);
    } else if (std::ranges::find(names, name) != names.end()) {
      for (const std::string& column : names)
        if (std::string cell; words >> cell) cells[{name, column}] = cell == "SOC" ? "SYS" : cell;
    }
  }
  return cells;
}

class RecordedMachine : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    text_ = read(kMachines / file());
    Result<Inventory> inventory = import_machine(text_, file());
    ASSERT_TRUE(inventory) << inventory.error().message;
    inventory_ = std::move(*inventory);
    printed_ = printed_cells(inventory_);
  }
  std::string file() const { return GetParam() + ".txt"; }

  /// A variant of the file, which must give an inventory that reads back as itself, or one sentence.
  std::optional<Inventory> import(const std::string& variant) const {
    const Result<Inventory> inventory = import_machine(variant, file());
    if (!inventory) {
      EXPECT_EQ(inventory.error().kind, ErrorKind::usage);
      EXPECT_TRUE(inventory.error().message.starts_with(file())) << inventory.error().message;
      EXPECT_EQ(inventory.error().message.find('\n'), std::string::npos);
      return std::nullopt;
    }
    const auto again = parse_inventory(to_line(to_json(*inventory)), "again");
    EXPECT_TRUE(again && *again == *inventory) << (again ? "differs" : again.error().message);
    return *inventory;
  }

  /// A part of the text may say less than all of it, and nothing else.
  void expect_part_of_whole(const Inventory& part) const {
    for (const auto& [pair, word] : printed_cells(part))
      EXPECT_EQ(word, printed_.contains(pair) ? printed_.at(pair) : "") << pair.first << " " << pair.second;
    for (size_t i = 0; i < part.devices.size(); ++i) {
      const Device &device = part.devices[i], &whole = inventory_.devices[i];
      EXPECT_TRUE(!device.numa_node.has_value() || device.numa_node == whole.numa_node) << i;
      EXPECT_TRUE(!device.cores.has_value() || device.cores == whole.cores) << i;
      EXPECT_TRUE(!device.pci.has_value() || device.pci == whole.pci) << i;
    }
  }

  std::string text_;
  Inventory inventory_;
  Cells printed_;
};

INSTANTIATE_TEST_SUITE_P(All, RecordedMachine, ::testing::ValuesIn(machine_names()), [](const auto& instance) {
  std::string name = instance.param;
  std::ranges::replace_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST(RecordedMachines, AreAllThere) { EXPECT_EQ(machine_names().size(), 33U); }

TEST_P(RecordedMachine, EqualsItsGoldenInventory) {
  const fs::path golden = kMachines / (GetParam() + ".json");
  const std::string imported = to_pretty(to_json(inventory_));
  if (env::get(env::update_golden) == "1") {
    ASSERT_TRUE(PendingFile::create(golden.string()).value().commit(imported));
  }
  EXPECT_EQ(imported, read(golden)) << "REMUDA_UPDATE_GOLDEN=1 rewrites " << golden;
}

TEST_P(RecordedMachine, ReadsBackFromJson) { EXPECT_TRUE(import(text_)); }

TEST_P(RecordedMachine, PrintsTheMatrixOfItsSource) {
  Cells cells = naive_cells(text_);
  for (const auto& [pair, word] : naive_cells(text_)) cells.try_emplace({pair.second, pair.first}, word);
  std::erase_if(cells, [](const auto& cell) { return cell.first.first == cell.first.second; });
  ASSERT_GE(cells.size(), 2U);
  EXPECT_EQ(printed_, cells);
}

TEST_P(RecordedMachine, CutAfterAnyLineSaysLessOrNothing) {
  for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n', end + 1))
    for (const size_t length : {end, end + 1})
      if (const auto part = import(text_.substr(0, length))) expect_part_of_whole(*part);
}

TEST_P(RecordedMachine, CutAnywhereSaysLessOrNothing) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i)
    if (const auto part = import(text_.substr(0, random() % text_.size()))) expect_part_of_whole(*part);
}

/// Changes each line.
template <typename Change>
std::string each_line(const std::string& text, Change change) {
  std::string changed;
  for (const std::string& line : split(text.substr(0, text.size() - 1), '\n')) changed += change(line);
  return changed;
}

TEST_P(RecordedMachine, LineEndsBlankLinesAndColoursChangeNothing) {
  const auto crlf = each_line(text_, [](const std::string& line) { return line + "\r\n"; });
  const auto blank = each_line(text_, [](const std::string& line) { return line + "\n \t\n\n"; });
  const auto colours = each_line(text_, [](const std::string& line) {
    return line.starts_with('#') ? line + "\n" : "\x1b[4m" + line + "\x1b[0m\n";
  });
  for (const std::string& variant : {crlf, blank, colours, "\xef\xbb\xbf" + text_})
    EXPECT_EQ(import(variant), inventory_);
}

TEST_P(RecordedMachine, AHeaderWithoutItsFirstTabChangesNothing) {
  const auto variant = each_line(text_, [](const std::string& line) {
    const size_t first = line.find_first_not_of(" \t");
    return line.substr(first == std::string::npos ? 0 : first) + "\n";
  });
  EXPECT_EQ(import(variant), inventory_);
}

TEST_P(RecordedMachine, TheOrderOfRowsChangesNothing) {
  std::vector<std::string> lines = split(text_, '\n');
  const auto is_row = [](const std::string& line) { return line.starts_with("GPU") || line.starts_with("NIC"); };
  std::mt19937 random(7);
  for (auto begin = lines.begin(); begin != lines.end();) {
    begin = std::find_if(begin, lines.end(), is_row);
    const auto end = std::find_if_not(begin, lines.end(), is_row);
    std::shuffle(begin, end, random);
    begin = end;
  }
  std::string variant;
  for (const std::string& line : lines) variant += line + "\n";
  EXPECT_EQ(import(variant), inventory_);
}

std::string expand_tabs(const std::string& line, size_t stop) {
  std::string wide;
  for (const char c : line)
    if (c == '\t')
      wide.append(stop == 0 ? 3 : stop - wide.size() % stop, ' ');
    else
      wide += c;
  return wide + "\n";
}

TEST_P(RecordedMachine, BlanksInPlaceOfTabsKeepAllLinks) {
  for (const size_t stop : {0, 4, 8}) {
    const auto part = import(each_line(text_, [&](const std::string& line) { return expand_tabs(line, stop); }));
    ASSERT_TRUE(part);
    EXPECT_EQ(part->links, inventory_.links);
    expect_part_of_whole(*part);
  }
}

}  // namespace
}  // namespace remuda::recorded
