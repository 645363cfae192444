// The options that every format takes: what the caller knows about a summary in addition to its text.
#pragma once

#include <string>

#include "gpumem/model/op_traits.hpp"

namespace gpumem::summary {

struct ReadOptions {
  /// The ops whose class names are layers; what is not among them and holds parameters is an error.
  /// gpumem::read_summary passes ops::vocabulary(). Must outlive the call.
  const model::Vocabulary* vocabulary = nullptr;
  std::string file = {};  ///< the file's name, for messages
  /// Take unknown layers that hold parameters as such: estimates become lower bounds, and say so. Otherwise they get an
  /// op of their own, whose memory is bounded (model::kOpaqueOp), if the vocabulary has it; else they are errors.
  bool lenient = false;
};

}  // namespace gpumem::summary
