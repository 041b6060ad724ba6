#include "job/compression.h"

namespace remuda::job {

std::string conflict_with(Compression compression, const TrainJob& job) {
  const bool one_bit = compression == Compression::one_bit;
  if (!one_bit && compression != Compression::powersgd) return "";
  if (one_bit && job.train.optimizer == Optimizer::sgd)
    return "train.optimizer = \"sgd\": it is a stage of Adam; \"powersgd\" goes together with both";
  if (one_bit && job.train.clip_norm > 0)
    return "train.clip_norm: nobody knows the norm of the gradient that hosts do not send";
  if (one_bit && job.train.average > 0) return "train.average";
  if (one_bit && job.memory.optimizer == UpdatesOn::host)
    return "memory.optimizer = \"host\": its state is there anyway";
  if (!job.elastic.join.empty()) return "elastic.join: what the others owe, a device that joins does not";
  if (job.elastic.ranks_lost > 0) return "elastic.ranks_lost: a lost host would take with it what it owes";
  return "";
}

}  // namespace remuda::job
