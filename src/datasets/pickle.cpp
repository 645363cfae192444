#include "gpumem_datasets/pickle.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <unordered_map>
#include <utility>

#include "gpumem_datasets/zip_archive.hpp"

namespace gpumem::datasets {

namespace pickle_detail {

/// The opcodes that a checkpoint holds; protocol 2 has more, which are refused.
enum class Op : std::uint8_t {
  mark = '(',
  stop = '.',
  binfloat = 'G',
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  none = 'N',
  binpersid = 'Q',
  reduce = 'R',
  binunicode = 'X',
  append = 'a',
  build = 'b',
  global = 'c',
  appends = 'e',
  binget = 'h',
  long_binget = 'j',
  binput = 'q',
  long_binput = 'r',
  setitem = 's',
  tuple = 't',
  setitems = 'u',
  empty_list = ']',
  empty_dict = '}',
  empty_tuple = ')',
  proto = 0x80,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  newtrue = 0x88,
  newfalse = 0x89,
  long1 = 0x8A,
};

constexpr std::uint64_t kProtocol = 2;

/// The bytes, one after another. What is not there is zero, and the reader is `short_of` it from then on.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }
  [[nodiscard]] bool short_of() const { return short_; }

  std::uint64_t number(std::size_t width) {
    const std::string_view bytes = take(width);
    return bytes.size() == width ? little_endian(bytes, 0, width) : 0;
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) {
      short_ = true;
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += taken.size();
    return taken;
  }
  /// Up to a line feed, and past it.
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) {
      short_ = true;
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return taken;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool short_ = false;
};

/// A number of `bytes.size()` bytes in two's complement.
inline std::int64_t signed_number(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const std::uint64_t value = little_endian(bytes, 0, bytes.size());
  const unsigned unused = 64U - 8U * static_cast<unsigned>(bytes.size());
  return static_cast<std::int64_t>(value << unused) >> unused;
}

/// The double of these bytes, the most significant first.
inline double big_endian_double(std::string_view bytes) {
  std::uint64_t bits = 0;
  for (const char byte : bytes) bits = (bits << 8U) | static_cast<unsigned char>(byte);
  return std::bit_cast<double>(bits);
}

}  // namespace pickle_detail

using namespace pickle_detail;

/// Runs the opcodes of one pickle. A step's fault is a text; empty: there is none.
class PickleMachine {
 public:
  explicit PickleMachine(std::string_view bytes) : cursor_(bytes) {}

  core::Result<Pickle> run(std::string_view file) {
    while (!stopped_) {
      op_at_ = cursor_.at();
      std::string fault = step();
      if (cursor_.short_of()) fault = "is cut off";
      if (!fault.empty()) return malformed("the pickle " + std::move(fault), file);
    }
    if (!cursor_.at_end()) return malformed("the pickle continues after its end", file);
    const std::string fault = fault_of_nesting();
    if (!fault.empty()) return malformed("the pickle " + fault, file);
    return std::move(made_);
  }

 private:
  using Fault = std::string;

  [[nodiscard]] core::Error malformed(const std::string& what, std::string_view file) const {
    return {core::ErrorCode::malformed_input, what + " (byte " + std::to_string(op_at_) + ")",
            core::Place{std::string(file), 0, {}}};
  }

  Fault step() {
    const auto code = static_cast<std::uint8_t>(cursor_.number(1));
    if (cursor_.short_of()) return {};
    if (op_at_ == 0 && static_cast<Op>(code) != Op::proto) return "does not begin with its protocol";
    switch (static_cast<Op>(code)) {
      case Op::proto: return protocol();
      case Op::stop: return stop();
      case Op::mark: return mark();
      case Op::none: return push({});
      case Op::newtrue: return push({.kind = PickleKind::boolean, .integer = 1});
      case Op::newfalse: return push({.kind = PickleKind::boolean});
      case Op::binint: return push_integer(signed_number(cursor_.take(4)));
      case Op::binint1: return push_integer(static_cast<std::int64_t>(cursor_.number(1)));
      case Op::binint2: return push_integer(static_cast<std::int64_t>(cursor_.number(2)));
      case Op::long1: return long_integer();
      case Op::binfloat: return push({.kind = PickleKind::number, .number = big_endian_double(cursor_.take(8))});
      case Op::binunicode: return push({.kind = PickleKind::text, .text = cursor_.take(cursor_.number(4))});
      case Op::empty_tuple: return push({.kind = PickleKind::tuple});
      case Op::empty_list: return push({.kind = PickleKind::list});
      case Op::empty_dict: return push({.kind = PickleKind::dict});
      case Op::tuple: return tuple_of_marked();
      case Op::tuple1: return tuple_of(1);
      case Op::tuple2: return tuple_of(2);
      case Op::tuple3: return tuple_of(3);
      case Op::append: return add(PickleKind::list, 1);
      case Op::appends: return add_marked(PickleKind::list);
      case Op::setitem: return add(PickleKind::dict, 2);
      case Op::setitems: return add_marked(PickleKind::dict);
      case Op::binget: return get(static_cast<std::uint32_t>(cursor_.number(1)));
      case Op::long_binget: return get(static_cast<std::uint32_t>(cursor_.number(4)));
      case Op::binput: return put(static_cast<std::uint32_t>(cursor_.number(1)));
      case Op::long_binput: return put(static_cast<std::uint32_t>(cursor_.number(4)));
      case Op::global: return global();
      case Op::binpersid: return storage();
      case Op::reduce: return reduce();
      case Op::build: return build();
    }
    return "holds opcode " + std::to_string(code) + ", which no checkpoint of torch.save needs";
  }

  // The stack. A mark opens a new one above what lies there, as in Python's reader.

  [[nodiscard]] std::size_t frame() const { return marks_.empty() ? 0 : marks_.back(); }
  [[nodiscard]] bool has(std::size_t count) const { return stack_.size() - frame() >= count; }
  [[nodiscard]] PickleValue& from_top(std::size_t depth) { return made_.values_[stack_[stack_.size() - 1 - depth]]; }
  void drop(std::size_t count) { stack_.resize(stack_.size() - count); }
  static Fault underflow() { return "takes a value where there is none"; }

  Fault push_index(PickleIndex index) {
    if (stack_.size() == kMostPickleValues) return "stacks more than 1,000,000 values";
    stack_.push_back(index);
    return {};
  }
  Fault push(PickleValue value) {
    if (cursor_.short_of()) return {};
    if (made_.values_.size() == kMostPickleValues) return "holds more than 1,000,000 values";
    made_.values_.push_back(std::move(value));
    return push_index(static_cast<PickleIndex>(made_.values_.size() - 1));
  }
  Fault push_integer(std::int64_t value) { return push({.kind = PickleKind::integer, .integer = value}); }

  Fault protocol() {
    if (op_at_ != 0) return "names its protocol twice";
    const std::uint64_t version = cursor_.number(1);
    if (version == kProtocol || cursor_.short_of()) return {};
    return "has protocol " + std::to_string(version) + "; torch.save writes 2";
  }
  Fault stop() {
    if (stack_.size() != 1 || !marks_.empty()) return "ends with a stack that does not hold just one value";
    made_.root_ = stack_.front();
    stopped_ = true;
    return {};
  }
  Fault mark() {
    if (marks_.size() == kMostPickleValues) return "stacks more than 1,000,000 marks";
    marks_.push_back(stack_.size());
    return {};
  }
  Fault long_integer() {
    const std::uint64_t size = cursor_.number(1);
    if (size > 8) return "holds a whole number of more than 64 bits";
    return push_integer(signed_number(cursor_.take(size)));
  }

  // Containers.

  Fault tuple_of(std::size_t count) {
    if (!has(count)) return underflow();
    PickleValue tuple = {.kind = PickleKind::tuple};
    tuple.items.assign(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    drop(count);
    return push(std::move(tuple));
  }
  Fault tuple_of_marked() {
    if (marks_.empty()) return "ends a group that was never begun";
    const std::size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return tuple_of(count);
  }
  Fault add(PickleKind kind, std::size_t count) {
    if (!has(count + 1)) return underflow();
    PickleValue& target = from_top(count);
    if (target.kind != kind) return "adds items to what does not take them";
    if (kind == PickleKind::dict && count % 2 != 0) return "adds a key without a value";
    target.items.insert(target.items.end(), stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    drop(count);
    return {};
  }
  Fault add_marked(PickleKind kind) {
    if (marks_.empty()) return "ends a group that was never begun";
    const std::size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return add(kind, count);
  }

  // The memo.

  Fault get(std::uint32_t key) {
    if (cursor_.short_of()) return {};
    const auto found = memo_.find(key);
    if (found == memo_.end()) return "recalls a value that it never remembered";
    return push_index(found->second);
  }
  Fault put(std::uint32_t key) {
    if (cursor_.short_of()) return {};
    if (!has(1)) return underflow();
    if (memo_.size() == kMostPickleValues) return "remembers more than 1,000,000 values";
    memo_[key] = stack_.back();
    return {};
  }

  // What Python's reader would call.

  Fault global() {
    const std::string_view module = cursor_.line();
    const std::string_view name = cursor_.line();
    if (cursor_.short_of()) return {};
    for (std::size_t row = 0; row < kPickleGlobals.size(); ++row) {
      if (kPickleGlobals[row].module == module && kPickleGlobals[row].name == name) {
        return push({.kind = PickleKind::global, .integer = static_cast<std::int64_t>(row)});
      }
    }
    return "names " + core::quoted(module) + " " + core::quoted(name) +
           ", which no weights need; none of it was run. Do not open this file with Python unless you trust it";
  }
  [[nodiscard]] static const PickleGlobal* global_of(const PickleValue& value) {
    return value.kind == PickleKind::global ? &kPickleGlobals[static_cast<std::size_t>(value.integer)] : nullptr;
  }
  [[nodiscard]] bool is(const PickleValue& value, const PickleGlobal& wanted) const {
    const PickleGlobal* found = global_of(value);
    return found != nullptr && found->name == wanted.name && found->module == wanted.module;
  }
  /// The value's items if it is a tuple of this many, else null.
  [[nodiscard]] const std::vector<PickleIndex>* tuple_items(const PickleValue& value, std::size_t count) const {
    return value.kind == PickleKind::tuple && value.items.size() == count ? &value.items : nullptr;
  }
  [[nodiscard]] std::optional<std::int64_t> count_of(const PickleValue& value) const {
    if (value.kind != PickleKind::integer || value.integer < 0) return std::nullopt;
    return value.integer;
  }

  /// A persistent id: ("storage", type, key, where it lay, elements).
  Fault storage() {
    if (!has(1)) return underflow();
    const auto* id = tuple_items(from_top(0), 5);
    if (id == nullptr) return "names something outside that is not a storage";
    const PickleValue& kind = made_.at((*id)[0]);
    const PickleGlobal* type = global_of(made_.at((*id)[1]));
    const PickleValue& key = made_.at((*id)[2]);
    const auto elements = count_of(made_.at((*id)[4]));
    const bool sound = kind.kind == PickleKind::text && kind.text == "storage" && type != nullptr && type->dtype &&
                       key.kind == PickleKind::text && elements;
    if (!sound) return "names something outside that is not a storage";
    PickleValue storage = {.kind = PickleKind::storage, .dtype = *type->dtype, .integer = *elements, .text = key.text};
    drop(1);
    return push(std::move(storage));
  }

  Fault reduce() {
    if (!has(2)) return underflow();
    const PickleValue& arguments = from_top(0);
    const PickleValue& function = from_top(1);
    if (is(function, kRebuildTensor)) return tensor(arguments);
    if (!is(function, kOrderedDict)) return "calls something that is not a function";
    if (tuple_items(arguments, 0) == nullptr) return "makes an OrderedDict in a way that torch.save does not";
    drop(2);
    return push({.kind = PickleKind::dict});
  }

  /// storage, offset, shape, strides, requires_grad, backward_hooks
  Fault tensor(const PickleValue& arguments) {
    const auto* items = tuple_items(arguments, 6);
    if (items == nullptr) return "makes a tensor in a way that torch.save does not";
    const PickleValue& storage = made_.at((*items)[0]);
    const auto offset = count_of(made_.at((*items)[1]));
    auto shape = counts_of(made_.at((*items)[2]));
    auto strides = counts_of(made_.at((*items)[3]));
    const PickleValue& hooks = made_.at((*items)[5]);
    const bool sound = storage.kind == PickleKind::storage && offset && shape && strides &&
                       shape->size() == strides->size() && hooks.kind == PickleKind::dict && hooks.items.empty();
    if (!sound) return "holds a tensor with a storage, shape, strides or hooks that no tensor has";
    const auto index = static_cast<std::int64_t>(made_.tensors_.size());
    made_.tensors_.push_back(
        {storage.dtype, storage.text, storage.integer, *offset, *std::move(shape), *std::move(strides)});
    drop(2);
    return push({.kind = PickleKind::tensor, .integer = index});
  }
  /// Short, so that a shape that many tensors share is not copied at length for each.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> counts_of(const PickleValue& tuple) const {
    if (tuple.kind != PickleKind::tuple || tuple.items.size() > kMostTensorDimensions) return std::nullopt;
    std::vector<std::int64_t> all;
    for (const PickleIndex item : tuple.items) {
      const auto count = count_of(made_.at(item));
      if (!count) return std::nullopt;
      all.push_back(*count);
    }
    return all;
  }

  /// An OrderedDict's attributes, such as a state dict's _metadata.
  Fault build() {
    if (!has(2)) return underflow();
    if (from_top(0).kind != PickleKind::dict || from_top(1).kind != PickleKind::dict) {
      return "sets attributes of what has none";
    }
    drop(1);
    return {};
  }

  /// Follows every item of every value once, without recursion: how far a value is above its deepest item.
  [[nodiscard]] Fault fault_of_nesting() const {
    constexpr std::uint8_t kUnseen = 0;
    constexpr std::uint8_t kOpen = 255;
    static_assert(kDeepestPickle < kOpen);
    struct Visit {
      PickleIndex index;
      std::size_t next;
    };
    std::vector<std::uint8_t> height(made_.values_.size(), kUnseen);
    std::vector<Visit> path = {{made_.root_, 0}};
    while (!path.empty()) {
      Visit& visit = path.back();
      const std::vector<PickleIndex>& items = made_.at(visit.index).items;
      height[visit.index] = kOpen;
      while (visit.next < items.size() && height[items[visit.next]] != kUnseen) {
        if (height[items[visit.next]] == kOpen) return "holds a value that holds itself";
        ++visit.next;
      }
      if (visit.next < items.size()) {
        if (path.size() == kDeepestPickle) return "nests values more than 100 deep";
        path.push_back({items[visit.next], 0});
        continue;
      }
      std::uint8_t highest = 0;
      for (const PickleIndex item : items) highest = std::max(highest, height[item]);
      if (highest >= kDeepestPickle) return "nests values more than 100 deep";
      height[visit.index] = static_cast<std::uint8_t>(highest + 1);
      path.pop_back();
    }
    return {};
  }

  Cursor cursor_;
  std::size_t op_at_ = 0;
  bool stopped_ = false;
  std::vector<PickleIndex> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, PickleIndex> memo_;
  Pickle made_;
};

const PickleValue* Pickle::find(const PickleValue& dict, std::string_view key) const {
  if (dict.kind != PickleKind::dict) return nullptr;
  for (std::size_t index = dict.items.size(); index > 0; index -= 2) {
    const PickleValue& candidate = at(dict.items[index - 2]);
    if (candidate.kind == PickleKind::text && candidate.text == key) return &at(dict.items[index - 1]);
  }
  return nullptr;
}

core::Result<Pickle> parse_pickle(std::string_view bytes, std::string_view file) {
  if (bytes.size() > kLargestPickle) {
    return core::Error{core::ErrorCode::malformed_input, "the pickle is larger than 16 MiB",
                       core::Place{std::string(file), 0, {}}};
  }
  return PickleMachine(bytes).run(file);
}

}  // namespace gpumem::datasets
