// A first job file, from the data and models in a folder: `remuda train --init FOLDER`.
#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace remuda::cli {

struct FirstJob {
  std::string text;     ///< a job file; its paths are names in the folder
  std::string summary;  ///< "resnet on 60000 images of 1x28x28 in 10 classes, tested on 10000"
  std::map<std::string, std::string> token_files;  ///< to be made from text: their bytes, by their names in the folder
};

/// What to train with the files directly in `folder`: IDX images with their labels, or else folders or tar files of
/// JPEG and PNG images (or `folder` itself is one), or else token files (*.bin, *.tokens, as uint16), chosen by name to
/// train on (train*) and to test with (test*, t10k*, val*), by size where names do not decide; or else text (*.txt),
/// each byte of which becomes a token, the last tenth to test with. And a TorchScript model (*.pt), or else a built-in
/// one. An error when there is no data; it says what was found and what is needed.
Result<FirstJob> first_job(const std::string& folder);

/// Writes first_job() to FOLDER/job.toml, and the token files it needs, and gives that path and the summary in one
/// sentence. A file of that name is not replaced.
Result<std::string> write_first_job(const std::string& folder);

}  // namespace remuda::cli
