// Input: the text of one of CARMA's job descriptions (.rad).
// Output: RadFile: the commands, the model's summary, batch size, policy and GPUs.
//
// CARMA has no description of the format; it follows from src/server.py and workloads/*.rad in
// github.com/itu-rad/CARMA: one entry a line, told apart by their place,
//
//   # assumption is that model.txt file is in this directory
//   conda activate tf                     an environment
//   python vgg.py --batch_size 32         the first line that names Python is what is run
//   vgg_32.model                          the model's summary, from the folder of the .rad file
//   /raid/datasets/imagenet               the data set
//   32                                    the batch size
//   exclusive                             the policy
//   1                                     GPUs, all or nothing
//   6684                                  what is known about its memory, MiB a GPU, each of the four may be missing:
//   21525.8262                            measured; estimated by Horus,
//   3121.344643                           FakeTensor
//   16000                                 and GPUMemNet
//
// Here an entry may also have its name, "model: vgg_32.model", in any order; the names are model, dataset, batch,
// policy, gpus, measured, horus, faketensor and gpumemnet. CARMA reads the policy but places by its own configuration.
// In the published files, 40000 means an estimate that could not be made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"

namespace gpumem::datasets {

struct RadFile {
  std::vector<std::string> commands;  ///< up to the one that names Python, comments left out
  std::string model;                  ///< the summary's file, as written
  std::string dataset;                ///< as written; may be empty
  std::int64_t batch_size = 0;
  std::string policy;  ///< as written; empty: none is named
  std::int64_t policy_line = 0;
  std::int64_t gpus = 1;
  std::optional<double> measured_mib;
  std::optional<double> horus_mib;
  std::optional<double> faketensor_mib;
  std::optional<double> gpumemnet_mib;
};

/// Errors: malformed_input, naming the line: no command that names Python, no model, a batch size or number of GPUs
/// that is no number, a name that is not one of these or occurs twice, more entries than there are. `file` is for
/// messages.
[[nodiscard]] core::Result<RadFile> parse_rad(std::string_view text, std::string_view file = {});

}  // namespace gpumem::datasets
