#include "data/image_listing.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <span>
#include <string_view>

#include "base/letter_case.h"
#include "base/text.h"
#include "data/decode.h"
#include "data/tar.h"

namespace remuda::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLayout = "each class is a folder of JPEG and PNG files, and its name that of the class";

bool is_other_image(std::string_view name) {
  const std::string ending = lower(name.substr(std::min(name.rfind('.'), name.size())));
  constexpr std::string_view kOthers[]{".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".avif", ".heic"};
  return std::ranges::find(kOthers, ending) != std::end(kOthers);
}

/// The names that hidden files have: those of systems, as .DS_Store and ._1.jpg.
bool is_hidden(std::string_view name) {
  const size_t slash = name.rfind('/');
  return name.substr(slash == name.npos ? 0 : slash + 1).starts_with('.');
}

Result<bool> is_wanted(const std::string& name, const std::string& in) {
  if (is_hidden(name)) return false;
  if (is_other_image(name))
    return usage_error(fmt::format("{} holds {}, which is neither a JPEG nor a PNG file", in, printable(name)));
  return is_picture_name(name);
}

/// Sorts the images, and makes classes of the folders that follow the first `passed` bytes of their names.
Result<ImageListing> labelled(std::vector<ListedImage> images, size_t passed, const std::string& path) {
  if (images.empty()) return usage_error(fmt::format("{} holds no images; {}", path, kLayout));
  std::ranges::sort(images, {}, &ListedImage::name);
  std::map<std::string, int> labels;
  const auto class_of = [&](const ListedImage& image) {
    return image.name.substr(passed, std::min(image.name.find('/', passed), image.name.size()) - passed);
  };
  for (const ListedImage& image : images) {
    if (image.name.find('/', passed) == std::string::npos)
      return usage_error(fmt::format("{} holds the image {} beside its folders; {}", path,
                                     printable(image.name.substr(passed)), kLayout));
    labels.emplace(class_of(image), 0);
  }
  ImageListing listing;
  for (auto& [name, label] : labels) {
    label = int(listing.classes.size());
    listing.classes.push_back(name);
  }
  for (ListedImage& image : images) image.label = labels.at(class_of(image));
  listing.images = std::move(images);
  return listing;
}

/// How many bytes of all names are the same folders, which are not the last ones of any.
size_t common_folders(std::span<const ListedImage> images) {
  for (size_t passed = 0;;) {
    const std::string& first = images.front().name;
    const size_t slash = first.find('/', passed);
    if (slash == std::string::npos) return passed;
    const std::string_view folder = std::string_view(first).substr(0, slash + 1);
    const bool in_all = std::ranges::all_of(images, [&](const ListedImage& image) {
      return image.name.starts_with(folder) && image.name.find('/', slash + 1) != std::string::npos;
    });
    if (!in_all) return passed;
    passed = slash + 1;
  }
}

/// Adds the images in a class's folder. Links to files count as files, those to folders are not followed: they may lead
/// in a circle.
Result<void> add_class(const fs::path& root, const fs::path& folder, std::vector<ListedImage>& images) {
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    const std::string name = entry->path().string().substr(root.string().size());
    if (entry->is_directory(ignored)) continue;
    REMUDA_ASSIGN(const bool wanted, is_wanted(name, root.string()));
    if (wanted) images.push_back({.name = name});
  }
  if (error) return usage_error(fmt::format("cannot read the folder {}: {}", folder.string(), error.message()));
  return {};
}

}  // namespace

Result<ImageListing> list_image_folder(const std::string& path) {
  const fs::path root = fs::path(path) / "";
  std::vector<ListedImage> images;
  std::error_code error;
  for (auto entry = fs::directory_iterator(root, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code ignored;
    const std::string name = entry->path().filename().string();
    if (is_hidden(name)) continue;
    if (entry->is_directory(ignored)) {
      REMUDA_TRY(add_class(root, entry->path(), images));
    } else {
      REMUDA_ASSIGN(const bool wanted, is_wanted(name, path));
      if (wanted) images.push_back({.name = name});
    }
  }
  if (error) return usage_error(fmt::format("cannot read the folder {}: {}", path, error.message()));
  return labelled(std::move(images), 0, path);
}

Result<ImageListing> list_image_archive(int fd, const std::string& path) {
  REMUDA_ASSIGN(std::vector<TarMember> members, list_tar(fd, path));
  std::vector<ListedImage> images;
  for (TarMember& member : members) {
    if (member.name.starts_with("./")) member.name.erase(0, 2);
    REMUDA_ASSIGN(const bool wanted, is_wanted(member.name, path));
    if (!wanted) continue;
    if (member.is_link)
      return usage_error(fmt::format("{} holds {} as a link; tar --dereference --hard-dereference packs the files",
                                     path, printable(member.name)));
    images.push_back({.name = std::move(member.name), .offset = member.offset, .bytes = member.bytes});
  }
  const size_t passed = images.empty() ? 0 : common_folders(images);
  return labelled(std::move(images), passed, path);
}

}  // namespace remuda::data
