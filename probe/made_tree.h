// For tests: a folder that looks like /sys or /proc, and is gone when the test ends.
#pragma once

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <string>

namespace remuda {

class MadeTree {
 public:
  MadeTree() {
    std::string name = ::testing::TempDir() + "remuda-tree-XXXXXX";
    if (const char* made = ::mkdtemp(name.data())) root_ = std::filesystem::canonical(made);
  }
  MadeTree(const MadeTree&) = delete;
  MadeTree& operator=(const MadeTree&) = delete;
  ~MadeTree() { std::filesystem::remove_all(root_); }

  std::string root() const { return root_.string(); }
  std::string path(const std::string& name) const { return (root_ / name).string(); }

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  void folder(const std::string& name) const { std::filesystem::create_directories(root_ / name); }
  /// A symbolic link to `target`, another name in the tree, which need not be there.
  void link(const std::string& name, const std::string& target) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::filesystem::create_symlink(root_ / target, root_ / name);
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(root_ / name); }

  /// A function of the PCI bus below `chain`, "pci0000:20/0000:20:01.1/0000:21:00.0", with its files; a driver is bound
  /// where `driver` names one.
  void pci(const std::string& chain, const std::map<std::string, std::string>& files,
           const std::string& driver = "") const {
    const std::string place = "devices/" + chain, address = chain.substr(chain.rfind('/') + 1);
    folder(place);
    for (const auto& [name, text] : files) write(fmt::format("{}/{}", place, name), text + "\n");
    link("bus/pci/devices/" + address, place);
    if (!driver.empty()) link(place + "/driver", "bus/pci/drivers/" + driver);
  }

 private:
  std::filesystem::path root_;
};

}  // namespace remuda
