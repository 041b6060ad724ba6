// Keys: how they change what is chosen, and what else they ask for. Pure.
#pragma once

#include "snapshot/hosts.h"
#include "top/choice.h"

namespace remuda::top {

/// Keys, as characters; those that are none are beyond all characters.
struct Key {
  static constexpr char32_t enter = '\n', tab = '\t', escape = 0x1b;
  static constexpr char32_t up = 0x110000, down = 0x110001, page_up = 0x110002, page_down = 0x110003, home = 0x110004,
                            end = 0x110005, backspace = 0x110006, resize = 0x110007, other = 0x110008;
};

/// What is to be done beside showing another frame.
enum class Wish {
  nothing,
  quit,
  cancel,  ///< `Choice::job`
};

/// `seen`: what is shown; null before the first reading.
Wish press(char32_t key, const snapshot::Seen* seen, Choice& choice);

}  // namespace remuda::top
