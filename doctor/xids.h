// What to do about each of the driver's XID codes. Data, with its source.
//
// The codes are those of NVIDIA's "Analyzing Xid Errors" (docs.nvidia.com/deploy/xid-errors) and its page-retirement
// guide; meanings and actions are in our words, and were not compared with every edition of that catalogue. A code that
// is not in this list gives a warning without an explanation.
#pragma once

#include <array>

namespace remuda::doctor {

struct Xid {
  int code;
  bool fatal;  ///< the GPU needs attention, not only the program that ran on it
  const char* meaning;
  const char* remedy;
};

inline constexpr std::array kXids{
    Xid{13, false, "a program did something wrong on the GPU",
        "restart the program; if it comes back, look for its fault"},
    Xid{31, false, "a program reached for memory it does not have",
        "restart the program; if it comes back, look for its fault"},
    Xid{43, false, "a program's work was stopped by the driver", "restart the program"},
    Xid{45, false, "a program's work was cleaned up after it ended", "restart the program"},
    Xid{48, true, "a memory error that could not be corrected", "end what runs there, then reset the GPU"},
    Xid{63, false, "a memory row was replaced, or will be at the next reset", "reset the GPU when it is idle"},
    Xid{64, true, "a memory row could not be replaced", "reset the GPU; if it comes back, have the card serviced"},
    Xid{74, true, "a link between GPUs failed", "reset the GPU; if it comes back, have the machine serviced"},
    Xid{79, true, "the GPU has fallen off the bus",
        "switch the machine off and on; then look at power, heat and seating"},
    Xid{94, false, "a memory error that one program alone suffered from", "restart the program"},
    Xid{95, true, "a memory error that other programs may suffer from too", "end what runs there, then reset the GPU"},
    Xid{119, true, "the GPU's own processor did not answer the driver",
        "reset the GPU; if it comes back, update the driver"},
    Xid{120, true, "the GPU's own processor failed", "reset the GPU; if it comes back, update the driver"},
};

}  // namespace remuda::doctor
