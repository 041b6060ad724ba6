// DeviceTable: a row for each device: how busy it is, its memory, what it did, who has it. Pure.
#pragma once

#include <string>
#include <vector>

#include "snapshot/hosts.h"
#include "top/body.h"
#include "top/choice.h"
#include "top/items.h"

namespace remuda::top {

/// "dash" stands for what is missing; why, is said below the table.
std::string dash(Charset charset);

/// Who has the device, or why nobody has it: "ana", "ben, idle 42m", "free".
std::string who_text(const snapshot::View& view, const snapshot::Histories& histories);

/// The devices among `items`. As many columns as the body is wide enough for, the most important ones first.
void add_devices(const std::vector<Item>& items, const snapshot::Histories& histories, Range range, bool has_hosts,
                 Body& body);

}  // namespace remuda::top
