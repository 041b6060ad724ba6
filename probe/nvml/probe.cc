#include "probe/nvml/probe.h"

#include "base/env.h"
#include "probe/nvml/watched.h"

namespace remuda::probe {
namespace {

constexpr double kStepSeconds = 5;
constexpr double kStartSteps = 4;

/// What is said in place of a probe that was asked for with a wrong environment.
class Refused final : public Probe {
 public:
  explicit Refused(Error error) : error_(std::move(error)) {}
  const char* name() const override { return "nvml"; }
  std::optional<std::string> unviable() override { return std::nullopt; }
  Result<Finding> find() override { return tl::unexpected(error_); }

 private:
  const Error error_;
};

Result<double> step_seconds() {
  if (!env::get(env::probe_timeout)) return kStepSeconds;
  return env::get_int(env::probe_timeout, 1, 3600);
}

}  // namespace

std::unique_ptr<Probe> make_nvml_probe(NvmlOptions options) {
  if (options.step_s <= 0) {
    const auto step_s = step_seconds();
    if (!step_s) return std::make_unique<Refused>(step_s.error());
    options.step_s = *step_s;
  }
  if (options.start_s <= 0) options.start_s = kStartSteps * options.step_s;
  const std::string library = options.library;
  return std::make_unique<nvml::Watched>(std::move(options), [library] { return nvml::load_lib(library); });
}

}  // namespace remuda::probe
