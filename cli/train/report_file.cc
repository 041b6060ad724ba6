#include "cli/train/report_file.h"

#include <csignal>
#include <fmt/format.h>

#include "base/text.h"

namespace remuda::cli {

Result<ReportFile> ReportFile::create(const std::string& path) {
  ReportFile report(path);
  if (path.empty()) return report;
  REMUDA_ASSIGN(PendingFile file, PendingFile::create(path));
  report.file_.emplace(std::move(file));
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write, as a full disk is
  return report;
}

Result<void> ReportFile::write(const Json& report, double pause_s) {
  if (path_.empty()) return {};
  const std::string text = to_pretty(report);
  const auto write_once = [&]() -> Result<void> {
    if (!file_) {
      REMUDA_ASSIGN(PendingFile another, PendingFile::create(path_));
      file_.emplace(std::move(another));
    }
    const Result<void> written = file_->commit(text);
    file_.reset();
    return written;
  };
  const auto written = write_again(write_once, pause_s, [](const Error& error, double next_s) {
    fmt::print(stderr, "{}\n", printable(tries_again_text(error, next_s)));
  });
  if (written) return {};
  return failed(
      fmt::format("the report is lost: {} ({} are needed)", written.error().message, human_bytes(double(text.size()))));
}

}  // namespace remuda::cli
