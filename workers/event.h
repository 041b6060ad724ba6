// Event: what a worker reports to the process that launched it, one line of JSON each, on the descriptor
// REMUDA_EVENTS_FD.
//
// The field "event" names the kind:
//   ready    rank, pid, torch                     the worker runs, and has met the others
//   alone    rank, samples_per_s                  its device was measured alone
//   step     step, steps, epoch, loss, samples_per_s, shares[], compute_s[], wait_s[]       from rank 0, per rank
//   balance  step, shares[], predicted_step_s, predicted_gain, reason                       from rank 0
//   memory   peak_bytes[], room_bytes[], pieces[], recomputes, spills                      from rank 0, per rank
//   device_collectives  library, same_bits; or why_not                                      from rank 0
//   epoch    epoch, epochs, train_loss, and with test data test_loss, test_accuracy         from rank 0
//   profile  steps, trace (a path, or empty)       from rank 0, when the steps to profile have been recorded
//   checkpoint  step, folder, failed (why, or empty), goes_on     from rank 0, when the state after that step has been
//                                                        kept; goes_on: the training did meanwhile
//   trained  rank      it has made all steps, and needs no other rank; of an elastic run, any but rank 0 waits to hear
//                      whether that one is lost before what it leaves behind is there
//   lost     kind (lost_peer), message, peer, step    an elastic rank waits to hear who is left
//   left     generation, ranks[], lost[] (rank, device, cause)   where nobody is above the ranks: those that go on, by
//                                                        their first numbers, as they have agreed; from each of them
//   door     address                               from the first rank: where others may join the run
//   joined   generation, rank, ranks[], devices[], step, seconds   the rank has joined those that were there; devices
//                                                        of all first numbers; from each of them
//   regrouped  rank, device, cause, step, resumed_from, state, seconds  from rank 0: those that are left go on without
//                                                                       the one that was lost last
//   note     text                                  from rank 0: what the user should know
//   output   output (weights, sample)              from rank 0, again and again while it makes it after the last step
//   error    kind (usage, failed, lost_peer), message, peer, step      the worker ends next, with a status other than 0
//   done     rank, stopped (the run, before its end); from rank 0 also report   the worker ends next, with status 0;
//                                                                              with the report the run is done
// What the launcher tells elastic ranks, on REMUDA_MEMBERS_FD, is of one kind: generation, ranks[] (who is left, by
// their first numbers), port and listen_fd (where they meet, and the socket there, which each has inherited), lost[]
// (rank, device, cause).
//
// A worker that still works when all others are done must send an event from time to time (see Patience in
// supervisor.h).
//
// Events are untrusted input: a field may be missing or of any type, and the readers below never throw.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace remuda::workers {

/// An object with a text field "event"; an error that says what is wrong with the line otherwise.
Result<Json> parse_event(std::string_view line);

/// The field's value where it has the right type, else `otherwise`.
std::string text_field(const Json& object, const char* key, const std::string& otherwise = "");
double number_field(const Json& object, const char* key, double otherwise = 0);
/// The field's numbers; empty where it is not an array, and NaN for each element that is not a number (JSON has
/// no NaN: writers put null).
std::vector<double> numbers_field(const Json& object, const char* key);

/// The Error that an "error" event reports.
Error reported_error(const Json& event);

}  // namespace remuda::workers
