// Labels of the collectives of a training run: ranks that make different calls get an error that names both. Buckets
// have the labels 0, 1, 2, ...
#pragma once

#include <cstdint>
#include <string>

namespace remuda::train::label {

enum : uint32_t {
  kFirst = 1u << 31,
  kStructure,    ///< hash of the model's shapes and types
  kOrder,        ///< order of gradients
  kValues,       ///< rank 0's parameters
  kReports,      ///< the reports of a step
  kCollectives,  ///< how a trial of the devices' collectives went
  kStuck,        ///< where each rank stands, once these have hung
  kMemory,       ///< the memory of each device
  kNeeds,        ///< what a step takes of it
  kPrecision,    ///< what each device computes in
  kHash,         ///< hash of all parameters
  kKernels,      ///< the kernels of each rank, once the hashes differ
  kAloneTurn,    ///< whose turn it is to measure
  kAloneTimes,   ///< what was measured
  kShares,       ///< new shares outside of a step's reports
  kEvaluation,
  kBufferWeights,
  kBuffers,
  kMeasureAgain,  ///< whether devices are measured alone again
  kTotals,        ///< each rank's sums at the end
  kImageCache,    ///< where each rank's memory for images is
  kClock,         ///< barriers by which clocks are compared
  kProfile,       ///< what ranks have recorded
  kCheckpoint,    ///< which checkpoint is read, and what ranks have written of one
  kCopies,        ///< copies of what ranks own, for a buddy
  kCompression,   ///< sums in one bit, and what ranks agree on before
  kLoss,          ///< how far each rank was when another was lost
  kAssembly,      ///< where ranks reach each other when that happens
  kFarewell,      ///< rank 0 needs the others no more
  kJoin,          ///< who joins the run
  kUserSum,       ///< what a program of the user's adds up
  kUserBarrier,
  kFeed,       ///< batches that other ranks have made
  kLoader,     ///< what ranks compare of a loader of such a program
  kOptions,    ///< what ranks compare of the options of such a program
  kNorms,      ///< the calls of batch norms
  kNormPiece,  ///< whether a rank has another piece for them
  kBlockPass,  ///< whether a rank has another pass of a model whose blocks are sharded
  kStateMove,  ///< what ranks own, on its way to other owners
  kLentBlock,  ///< the block that rank 0 asks for outside of a pass
  kFirstNorm,  ///< the first call of a piece; the next ones count on
};

/// What is exchanged under it, as errors name it: "the reports of a step", "bucket 3". For comm::name_labels().
std::string text_of(uint32_t label);

}  // namespace remuda::train::label
