// Whatever a job writes where it may say how its run goes, what is believed of it is within bounds, and is read again
// as the same.
#include <cstddef>
#include <cstdint>
#include <unistd.h>

#include "base/check.h"
#include "run/run_board.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace remuda;
  run::RunBoard board;
  if (::pwrite(board.fd(), bytes, size, 0) != static_cast<ssize_t>(size)) return 0;
  const auto notice = board.read();
  if (!notice) return 0;
  REMUDA_CHECK(notice->step >= 0 && notice->steps >= 0, "steps are counted from 0");
  REMUDA_CHECK(notice->step_s >= 0 && notice->step_s <= pool::RunNotice::kLongestStep_s, "a step has a length");
  REMUDA_CHECK(notice->checkpoint_step >= 0, "a checkpoint is of a step");
  for (const double span_s : {notice->checkpoint_age_s, notice->checkpoint_every_s})
    REMUDA_CHECK(span_s >= 0 && span_s <= pool::RunNotice::kLongestAge_s, "a checkpoint has an age");
  REMUDA_CHECK(notice->parts.size() <= pool::RunNotice::kMostParts, "a machine has so many devices");
  for (const pool::RunPart& part : notice->parts)
    REMUDA_CHECK(part.share >= 0 && part.share <= 1 && part.waiting >= 0 && part.waiting <= 1,
                 "parts are of one whole");
  run::RunBoard again;
  run::write_notice(again.fd(), *notice);
  REMUDA_CHECK(again.read() == notice, "a notice that is written is read as the same");
  return 0;
}
