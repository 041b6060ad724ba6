// Details: all that is known of one item, in place of the list. Pure.
#pragma once

#include "snapshot/hosts.h"
#include "top/body.h"
#include "top/choice.h"
#include "top/items.h"

namespace remuda::top {

void add_details(const Item& item, const snapshot::Histories& histories, Range range, double now_s, Body& body);

}  // namespace remuda::top
