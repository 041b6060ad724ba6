// Exports: files that other programs read: metrics for node_exporter's textfile collector, and the jobs of each GPU for
// dcgm-exporter.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/result.h"
#include "monitor/metrics.h"

namespace remuda::cli {

/// One thread.
class Exports {
 public:
  /// An empty name: none is written.
  Exports(std::string text_file, std::string job_folder)
      : text_file_(std::move(text_file)), job_folder_(std::move(job_folder)) {}
  /// Removes the files of jobs: from now on nobody knows who holds what.
  ~Exports();

  Exports(const Exports&) = delete;
  Exports& operator=(const Exports&) = delete;

  /// Writes what has changed. Where one cannot be written, the others are all the same; the error is that of the first.
  Result<void> write(const monitor::Moment& moment);

 private:
  Result<void> write_jobs(const monitor::Moment& moment);

  std::string text_file_, job_folder_;
  std::map<std::string, std::string> jobs_;  ///< what was written last, by path
};

}  // namespace remuda::cli
