// Input: a text in which a table has been found.
// Output: what the readers of all tables share: errors with a line number, the rule below the header, and the totals
// below the table.
#pragma once

#include <optional>

#include "gpumem/model/graph_builder.hpp"
#include "gpumem/summary/format.hpp"
#include "gpumem/summary/text.hpp"

namespace gpumem::summary {

/// Reads the printed total below a summary, a table or a tree, and returns it if there is one; a second summary of its
/// format is an error.
std::optional<std::int64_t> read_foot(const Format& format, std::string_view text, Lines& lines,
                                      model::GraphBuilder& builder);

class TableReader {
 public:
  TableReader(const Format& format, std::string_view text, std::size_t begin, const ReadOptions& options);

 protected:
  /// Fails the graph at this line and returns false, so that a reader can `return refuse(...)`.
  bool refuse(std::int64_t line, core::Error error);
  /// malformed_input at the current line.
  bool refuse(std::string message);
  /// The op of a layer of an unknown class that holds parameters: one whose memory is bounded. Null if it is read
  /// leniently, or if no op is for that.
  [[nodiscard]] const model::OpTraits* opaque_op() const {
    return options_.lenient ? nullptr : options_.vocabulary->find_op(model::kOpaqueOp);
  }
  /// The error for a layer of an unknown class that holds parameters.
  bool refuse_unknown(std::int64_t line, std::string_view name, std::int64_t parameters, std::string_view hint = {});
  /// The table ends before its closing line.
  bool refuse_cut_off();

  /// Steps over the rule below the header.
  bool read_rule(char of);
  std::optional<std::int64_t> read_foot() { return summary::read_foot(format_, text_, lines_, builder_); }
  /// Reads "Input size (MB): 0.57", or in another unit, below the total, of the printed batch; a megabyte is this many
  /// bytes.
  void read_input_size(std::int64_t megabyte);
  /// Reads "Forward/backward pass size (MB): 178.09" after it: twice what all layers with parameters leave, in
  /// float32.
  void read_output_size(std::int64_t megabyte);
  /// Parses the `cell` of this layer into shapes(), learning the batch size from the first one.
  bool read_shapes(std::string_view cell, std::string_view layer, std::int64_t line);

  [[nodiscard]] const std::vector<core::Shape>& shapes() const { return shapes_; }
  [[nodiscard]] std::vector<core::Shape>& shapes() { return shapes_; }
  [[nodiscard]] Lines& lines() { return lines_; }
  [[nodiscard]] model::GraphBuilder& builder() { return builder_; }
  [[nodiscard]] const ReadOptions& options() const { return options_; }

  /// The first size printed anywhere is the model's own, and its first dimension the batch.
  void learn_batch(std::string_view cell);

 private:
  /// "1.15" of "(GB)": 115 hundredths of 10^9 bytes.
  struct PrintedSize {
    std::int64_t hundredths = 0;
    std::int64_t unit = 1;
  };
  /// Steps to the line that begins so, and reads its figure; nothing if it is none.
  std::optional<PrintedSize> size_behind(std::string_view mark, std::int64_t megabyte);

  const Format& format_;
  std::string_view text_;
  Lines lines_;
  const ReadOptions& options_;
  model::GraphBuilder builder_;
  std::vector<core::Shape> shapes_;
  bool ambiguous_ = false;        ///< said once that batch 1 does not tell the batch axis
  std::int64_t batch_size_ = -1;  ///< the batch the summary was made with; 0: printed as -1 or None; -1: not seen
};

}  // namespace gpumem::summary
