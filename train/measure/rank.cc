#include "train/measure/rank.h"

#include <algorithm>
#include <c10/util/Exception.h>

#include "device/fields.h"
#include "train/error_text.h"
#include "train/measure/target.h"

namespace remuda::train {
namespace {

constexpr uint32_t kPhaseLabel = 0;

Result<std::unique_ptr<Target>> make_target(const measure::Plan& plan, int rank) {
  const auto own = std::ranges::find(plan.devices, rank, &measure::PlanDevice::rank);
  if (own == plan.devices.end()) return usage_error("the plan has nothing for this rank");
  if (own->kind == DeviceKind::cpu) return make_cpu_target(plan, rank);
  return make_accelerator_target(plan, rank);
}

Json with_figure(const char* name, double value) { return {{name, value}}; }

/// The figures of one phase, as fields of an event.
Result<Json> figures_of(Target& target, const measure::Phase& phase) {
  switch (phase.subject) {
    case measure::Subject::device: {
      REMUDA_ASSIGN(const DeviceFigures figures, target.device(phase.device));
      Json json{{"device", fields::write(figures.measured)}};
      if (figures.memory_copy_gbps) json["memory_copy_gbps"] = *figures.memory_copy_gbps;
      return json;
    }
    case measure::Subject::pull: {
      REMUDA_ASSIGN(const double gbps, target.pull_gbps(phase.device, phase.peer));
      return with_figure("gbps", gbps);
    }
    case measure::Subject::latency: {
      REMUDA_ASSIGN(const double us, target.latency_us(phase.device, phase.peer));
      return with_figure("latency_us", us);
    }
  }
  return failed("a phase without a subject");
}

Result<Json> try_figures(Target& target, const measure::Phase& phase) {
  try {
    return figures_of(target, phase);
  } catch (const c10::Error& error) {
    return failed("libtorch: " + sentence_of(error));
  } catch (const std::exception& error) {
    return failed(sentence_of(error));
  }
}

Json event_of(const Result<Json>& figures) {
  if (!figures) return {{"event", "unmeasured"}, {"why", figures.error().message}};
  Json event{{"event", "measured"}};
  event.update(*figures);
  return event;
}

}  // namespace

Result<void> measure_rank(const measure::Plan& plan, comm::Communicator& communicator, const Events& events) {
  const int rank = communicator.rank();
  REMUDA_ASSIGN(const std::unique_ptr<Target> target, make_target(plan, rank));
  const auto all = phases(plan);
  for (size_t i = 0; i < all.size(); ++i) {
    REMUDA_TRY(communicator.barrier(kPhaseLabel));
    if (!takes_part(plan, all[i], rank)) continue;
    const bool speaks = plan.devices[all[i].device].rank == rank;
    if (speaks) events.send({{"event", "phase"}, {"phase", i}, {"of", all.size()}, {"name", name_of(plan, all[i])}});
    Json event = event_of(try_figures(*target, all[i]));
    event["phase"] = i;
    if (speaks) events.send(event);
  }
  return communicator.barrier(kPhaseLabel);
}

}  // namespace remuda::train
