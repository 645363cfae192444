// Input: a pickle of protocol 2 (docs.python.org/3/library/pickletools) as torch.save writes it.
// Output: Pickle, its values as plain data: numbers, texts, tuples, lists, dicts, and tensors by the name of their
// storage.
//
// A pickle is a program, and Python's reader calls what it names. This one calls nothing: the few names that a
// checkpoint needs (kPickleGlobals) have a meaning of their own here, and any other is an error. OrderedDict is a dict,
// an attribute set on one (BUILD) is dropped, torch._utils._rebuild_tensor_v2 is a tensor.
//
// Values lie in one list and name each other by index; what a pickle holds twice is there once. No value holds itself,
// and none is nested deeper than kDeepestPickle. Beware that sharing makes a walk over all paths exponential: visit an
// index once. Memory and time are in proportion to the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"

namespace gpumem::datasets {

inline constexpr std::size_t kLargestPickle = std::size_t{16} << 20;  ///< bytes
inline constexpr std::size_t kMostPickleValues = 1'000'000;           ///< made, on the stack, or remembered
inline constexpr std::size_t kDeepestPickle = 100;
inline constexpr std::size_t kMostTensorDimensions = 8;

using PickleIndex = std::uint32_t;

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  integer,
  number,
  text,
  tuple,
  list,
  dict,
  storage,
  tensor,
  global
};

/// A name that a pickle may hold.
struct PickleGlobal {
  std::string_view module;
  std::string_view name;
  std::optional<core::DType> dtype = {};  ///< of a storage; nothing: one of the other two
};

inline constexpr PickleGlobal kOrderedDict = {"collections", "OrderedDict"};
inline constexpr PickleGlobal kRebuildTensor = {"torch._utils", "_rebuild_tensor_v2"};
inline constexpr std::array<PickleGlobal, 12> kPickleGlobals = {{kOrderedDict,
                                                                 kRebuildTensor,
                                                                 {"torch", "DoubleStorage", core::DType::float64},
                                                                 {"torch", "FloatStorage", core::DType::float32},
                                                                 {"torch", "HalfStorage", core::DType::float16},
                                                                 {"torch", "BFloat16Storage", core::DType::bfloat16},
                                                                 {"torch", "LongStorage", core::DType::int64},
                                                                 {"torch", "IntStorage", core::DType::int32},
                                                                 {"torch", "ShortStorage", core::DType::int16},
                                                                 {"torch", "CharStorage", core::DType::int8},
                                                                 {"torch", "ByteStorage", core::DType::uint8},
                                                                 {"torch", "BoolStorage", core::DType::boolean}}};

struct PickleValue {
  PickleKind kind = PickleKind::none;
  core::DType dtype = core::DType::float32;  ///< of a storage
  std::int64_t integer = 0;                  ///< integer; boolean: 0 or 1; storage: its elements; global: its row
  double number = 0.0;
  std::string_view text = {};           ///< text, as it is in the bytes; storage: its key
  std::vector<PickleIndex> items = {};  ///< of a tuple or list; dict: key, value, key, value, ...
};

/// Where the elements of a tensor lie in its storage. Nothing is checked against the storage here.
struct PickleTensor {
  core::DType dtype = core::DType::float32;
  std::string_view storage;           ///< its key
  std::int64_t storage_elements = 0;  ///< as the pickle says
  std::int64_t offset = 0;            ///< elements, not negative; so are shape and strides
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< as many as the shape has
};

/// Must not outlive the bytes that it was read from.
class Pickle {
 public:
  [[nodiscard]] PickleIndex root() const { return root_; }
  [[nodiscard]] const PickleValue& at(PickleIndex index) const { return values_[index]; }

  /// The tensor of a value of that kind.
  [[nodiscard]] const PickleTensor& tensor(const PickleValue& value) const {
    return tensors_[static_cast<std::size_t>(value.integer)];
  }

  /// What a dict holds under this text; null if nothing, or if it is no dict. The last of several, as in Python.
  [[nodiscard]] const PickleValue* find(const PickleValue& dict, std::string_view key) const;

 private:
  friend class PickleMachine;
  std::vector<PickleValue> values_;
  std::vector<PickleTensor> tensors_;
  PickleIndex root_ = 0;
};

/// Errors: malformed_input, naming the byte. `file` is for messages.
[[nodiscard]] core::Result<Pickle> parse_pickle(std::string_view bytes, std::string_view file = {});

}  // namespace gpumem::datasets
