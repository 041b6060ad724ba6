#include "data/token_set.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "base/check.h"

namespace remuda::data {

static_assert(std::endian::native == std::endian::little, "token files are mapped as they are");

Result<TokenSet> TokenSet::open(const std::string& path, int context, int vocabulary) {
  REMUDA_CHECK(context > 0 && vocabulary > 0, "a window holds tokens");
  REMUDA_ASSIGN(const Fd fd, open_for_reading(path));
  TokenSet set;
  REMUDA_ASSIGN(set.file_, MappedFile::map(fd.get(), path));
  const size_t bytes = set.file_.bytes().size();
  if (bytes % 2 != 0)
    return usage_error(fmt::format("{} has {} bytes, an odd number; tokens are uint16, two bytes each", path, bytes));
  set.tokens_ = {reinterpret_cast<const uint16_t*>(set.file_.bytes().data()), bytes / 2};
  set.context_ = size_t(context);
  if (set.tokens_.size() < set.context_ + 1)
    return usage_error(fmt::format("{} holds {} tokens; one window of data.context = {} needs {}", path,
                                   set.tokens_.size(), context, context + 1));
  set.windows_ = (set.tokens_.size() - 1) / set.context_;
  const auto wrong = std::find_if(set.tokens_.begin(), set.tokens_.end(), [&](uint16_t t) { return t >= vocabulary; });
  if (wrong != set.tokens_.end())
    return usage_error(fmt::format("{} holds token {} at position {}; model.vocabulary is {}", path, *wrong,
                                   wrong - set.tokens_.begin(), vocabulary));
  return set;
}

}  // namespace remuda::data
