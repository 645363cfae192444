// Input: the JSON of a recording.
// Output: its fields, read and in range one by one; what they point at is checked in recording.hpp, because
// fields may be in any order.
// Units: those of StepRecording.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/named.hpp"
#include "gpumem/model/step_recording.hpp"

namespace gpumem::summary {

/// The phases in the order of the numbers that a file has for them (Phase in src/python/gpumem/record/run.py).
inline constexpr auto kRecordedPhases = std::to_array<model::Named<model::RecordedCall::Phase>>(
    {{model::RecordedCall::Phase::construction, "construction"},
     {model::RecordedCall::Phase::forward, "forward"},
     {model::RecordedCall::Phase::backward, "backward"},
     {model::RecordedCall::Phase::recomputation, "recomputation"},
     {model::RecordedCall::Phase::optimizer, "optimizer"},
     {model::RecordedCall::Phase::communication, "communication"},
     {model::RecordedCall::Phase::other, "other"}});

/// A recording whose indices may still point nowhere.
struct RecordingFields {
  model::StepRecording recording;
  std::vector<model::AxisExpression> strides;  ///< of all strided tensors, one after the other
  std::vector<std::int64_t> dtypes;            ///< of each tensor: an index into the strings
  std::vector<std::uint32_t> call_modules;     ///< of each call: an index into the strings
  std::vector<bool> released;                  ///< by allocation
  std::vector<std::string> warnings;           ///< one a row, with its place
};

/// Errors: malformed_input with the JSON pointer of what is missing, unknown, or of the wrong kind.
[[nodiscard]] core::Result<RecordingFields> read_recording_fields(const core::JsonValue& root);

namespace recording_fields_detail {

using core::JsonValue;
using core::Status;
using Kind = JsonValue::Kind;

inline constexpr std::int64_t kMostTimes = std::int64_t{1} << 32;

using core::malformed;

/// Reads one field after the other.
class Reader {
 public:
  core::Result<RecordingFields> read(const JsonValue& root) {
    if (!root.is(Kind::object)) return malformed("must hold one JSON object");
    for (const JsonValue& field : root.items()) {
      const Status read = read_field(field);
      if (!read) return core::below(field.key(), read.error());
    }
    if (const Status whole = complete(); !whole) return whole.error();
    return std::move(fields_);
  }

 private:
  using Read = Status (Reader::*)(const JsonValue&);
  struct Field {
    std::string_view name;
    Read read;
    bool needed = true;
  };
  static constexpr std::size_t kFields = 22;
  static const std::array<Field, kFields>& fields() {
    static constexpr std::array<Field, kFields> kAll = {{{"format", &Reader::read_format},
                                                         {"version", &Reader::read_version},
                                                         {"title", &Reader::read_title},
                                                         {"torch", &Reader::read_torch},
                                                         {"capability", &Reader::read_capability},
                                                         {"world_size", &Reader::read_world_size},
                                                         {"rank", &Reader::read_rank},
                                                         {"axes", &Reader::read_axes},
                                                         {"recorded_at", &Reader::read_recorded_at},
                                                         {"checked_at", &Reader::read_checked_at},
                                                         {"optimizer", &Reader::read_optimizer},
                                                         {"precision", &Reader::read_precision},
                                                         {"settings", &Reader::read_settings, false},
                                                         {"warnings", &Reader::read_warnings},
                                                         {"strings", &Reader::read_strings},
                                                         {"dims", &Reader::read_dims},
                                                         {"tensors", &Reader::read_tensors},
                                                         {"sizes", &Reader::read_sizes},
                                                         {"calls", &Reader::read_calls},
                                                         {"parameters", &Reader::read_parameters},
                                                         {"kernels", &Reader::read_kernels, false},
                                                         {"events", &Reader::read_events}}};
    return kAll;
  }

  Status read_field(const JsonValue& field) {
    for (std::size_t index = 0; index < kFields; ++index) {
      if (fields()[index].name != field.key()) continue;
      seen_[index] = true;
      return (this->*fields()[index].read)(field);
    }
    return malformed("is not a field of a recording");
  }

  [[nodiscard]] Status complete() const {
    for (std::size_t index = 0; index < kFields; ++index) {
      if (!seen_[index] && fields()[index].needed) return malformed("names no " + core::quoted(fields()[index].name));
    }
    if (fields_.recording.events.empty()) return malformed("holds no events");
    for (const auto* points : {&fields_.recording.recorded_at, &fields_.recording.checked_at}) {
      for (const auto& point : *points) {
        // Without an axis it is the sizes of the one run, where they are known.
        if (!fields_.recording.axes.empty() && point.size() != fields_.recording.axes.size())
          return malformed("gives a run other values than its axes have");
      }
    }
    return core::Done{};
  }

  static Status text(const JsonValue& field, std::string& to) {
    if (!field.is(Kind::text)) return malformed("must be text");
    to = field.text();
    return core::Done{};
  }
  static Status number(const JsonValue& field, std::int64_t& to, std::int64_t least = 0,
                       std::int64_t most = INT64_MAX) {
    if (!field.is(Kind::integer) || field.integer() < least || field.integer() > most) {
      return malformed("must be a whole number of " + std::to_string(least) + " or more");
    }
    to = field.integer();
    return core::Done{};
  }
  /// Calls `take` for each item of a list, and says which one is wrong.
  template <typename Take>
  static Status each(const JsonValue& list, Take take) {
    if (!list.is(Kind::list)) return malformed("must be a list");
    std::size_t index = 0;
    for (const JsonValue& item : list.items()) {
      if (const Status taken = take(item); !taken) return core::below(index, taken.error());
      ++index;
    }
    return core::Done{};
  }
  /// As `each`, of rows of `size` items; `form` says what is in one. `take` gets the first of a row's items.
  template <typename Take>
  static Status each_row(const JsonValue& list, std::size_t size, const char* form, Take take) {
    return each(list, [&](const JsonValue& row) -> Status {
      if (!row.is(Kind::list) || row.size() != size) return malformed(std::string("must be ") + form);
      return take(row.items().begin());
    });
  }
  static Status numbers(const JsonValue& list, std::vector<std::int64_t>& to) {
    return each(list, [&](const JsonValue& item) {
      to.push_back(0);
      return number(item, to.back());
    });
  }

  Status read_format(const JsonValue& field) {
    if (!field.is("gpumem-recording")) return malformed("must be \"gpumem-recording\"");
    return core::Done{};
  }
  Status read_version(const JsonValue& field) {
    if (field.is(1)) return core::Done{};
    return malformed("must be 1: a newer gpumem wrote this recording; use that one, or record again");
  }
  Status read_title(const JsonValue& field) { return text(field, fields_.recording.title); }
  Status read_torch(const JsonValue& field) { return text(field, fields_.recording.torch); }
  Status read_optimizer(const JsonValue& field) { return text(field, fields_.recording.optimizer); }
  Status read_precision(const JsonValue& field) { return text(field, fields_.recording.precision); }
  Status read_world_size(const JsonValue& field) { return number(field, fields_.recording.world_size, 1); }
  Status read_rank(const JsonValue& field) { return number(field, fields_.recording.rank); }
  Status read_capability(const JsonValue& field) {
    std::vector<std::int64_t> both;
    if (const Status read = numbers(field, both); !read) return read.error();
    if (both.size() != 2) return malformed("must be two numbers, such as [8, 0]");
    fields_.recording.capability = {both[0], both[1]};
    return core::Done{};
  }
  Status read_axes(const JsonValue& field) {
    const Status read =
        each(field, [&](const JsonValue& item) { return text(item, fields_.recording.axes.emplace_back()); });
    if (!read) return read.error();
    const auto& axes = fields_.recording.axes;
    const bool known = axes.empty() || (axes[0] == "batch" && (axes.size() == 1 || axes[1] == "sequence"));
    if (!known || axes.size() > 2) return malformed("must be [], [\"batch\"] or [\"batch\", \"sequence\"]");
    return core::Done{};
  }
  Status read_points(const JsonValue& field, std::vector<std::vector<std::int64_t>>& to) {
    return each(field, [&](const JsonValue& item) { return numbers(item, to.emplace_back()); });
  }
  Status read_recorded_at(const JsonValue& field) { return read_points(field, fields_.recording.recorded_at); }
  Status read_checked_at(const JsonValue& field) { return read_points(field, fields_.recording.checked_at); }
  Status read_strings(const JsonValue& field) {
    return each(field, [&](const JsonValue& item) { return text(item, fields_.recording.strings.emplace_back()); });
  }

  /// An object of booleans, numbers and texts.
  Status read_settings(const JsonValue& field) {
    if (!field.is(Kind::object)) return malformed("must be an object");
    for (const JsonValue& item : field.items()) {
      std::string value;
      if (item.is(Kind::boolean)) value = item.boolean() ? "true" : "false";
      if (item.is(Kind::integer)) value = std::to_string(item.integer());
      if (item.is(Kind::real)) value = std::to_string(item.real());
      if (item.is(Kind::text)) value = item.text();
      if (value.empty()) return core::below(item.key(), malformed("must be true, false, a number or text"));
      fields_.recording.settings.emplace_back(item.key(), std::move(value));
    }
    return core::Done{};
  }

  /// [kind, text, where, count].
  Status read_warnings(const JsonValue& field) {
    return each_row(field, 4, "[kind, text, where, count]", [&](JsonValue::Items::Iterator at) -> Status {
      std::string kind;
      std::string message;
      std::string where;
      for (std::string* part : {&kind, &message, &where}) {
        if (const Status read = text(*at, *part); !read) return read.error();
        ++at;
      }
      if (kind == "value" || kind == "size") {
        auto& lines = fields_.recording.invented;
        if (std::find(lines.begin(), lines.end(), where) == lines.end()) lines.push_back(where);
        if (kind == "size") fields_.recording.invented_sizes = true;
      }
      if (!where.empty()) message = where + ": " + message;
      if ((*at).is(Kind::integer) && (*at).integer() > 1) {
        message += " (" + std::to_string((*at).integer()) + " times)";
      }
      fields_.warnings.push_back(std::move(message));
      return core::Done{};
    });
  }

  Status read_expression(const JsonValue& item, model::AxisExpression& expression) {
    if (!item.is(Kind::list) || item.size() > expression.c.size()) {
      return malformed("must be a list of at most 4 coefficients");
    }
    std::size_t at = 0;
    for (const JsonValue& coefficient : item.items()) {
      if (!coefficient.is(Kind::integer)) return malformed("must hold whole numbers");
      expression.c[at++] = coefficient.integer();
    }
    return core::Done{};
  }
  Status read_dims(const JsonValue& field) {
    return each(field, [&](const JsonValue& item) {
      return read_expression(item, fields_.recording.expressions.emplace_back());
    });
  }

  /// A list of whole numbers, each put into the table of numbers.
  core::Result<model::Slice> slice(const JsonValue& list) {
    const auto first = static_cast<std::uint32_t>(fields_.recording.numbers.size());
    if (const Status read = numbers(list, fields_.recording.numbers); !read) return read.error();
    return model::Slice{first, static_cast<std::uint32_t>(list.size())};
  }

  /// [dtype, [dim...], layout].
  Status read_tensors(const JsonValue& field) {
    return each_row(field, 3, "[dtype, dims, layout]", [&](JsonValue::Items::Iterator at) -> Status {
      model::RecordedTensor tensor;
      std::int64_t dtype = 0;
      if (const Status read = number(*at, dtype); !read) return read.error();
      fields_.dtypes.push_back(dtype);
      const auto dims = slice(*++at);
      if (!dims) return dims.error();
      tensor.dims = *dims;
      if (const Status read = read_layout(*++at, tensor); !read) return read.error();
      fields_.recording.tensors.push_back(tensor);
      return core::Done{};
    });
  }
  Status read_layout(const JsonValue& layout, model::RecordedTensor& tensor) {
    using Layout = model::RecordedTensor::Layout;
    if (!layout.is(Kind::list)) return malformed("has a layout that is not a list");
    if (layout.size() == 0) return core::Done{};
    if (layout.size() != tensor.dims.count) return malformed("has a layout of another number of axes");
    if (!(*layout.items().begin()).is(Kind::list)) {
      const auto order = slice(layout);
      if (!order) return order.error();
      tensor.order = *order;
      tensor.layout = Layout::dense;
      return core::Done{};
    }
    tensor.order = {static_cast<std::uint32_t>(fields_.recording.numbers.size()), tensor.dims.count};
    tensor.layout = Layout::strided;
    return each(layout, [&](const JsonValue& stride) {
      fields_.recording.numbers.push_back(static_cast<std::int64_t>(fields_.strides.size()));
      return read_expression(stride, fields_.strides.emplace_back());
    });
  }

  /// [bytes of an item, [dim...]].
  Status read_sizes(const JsonValue& field) {
    return each_row(field, 2, "[item, dims]", [&](JsonValue::Items::Iterator at) -> Status {
      model::RecordedSize size;
      if (const Status read = number(*at, size.item); !read) return read.error();
      const auto dims = slice(*++at);
      if (!dims) return dims.error();
      size.dims = *dims;
      fields_.recording.sizes.push_back(size);
      return core::Done{};
    });
  }

  /// [op, module, phase, thread, [inputs], [outputs], extra].
  Status read_calls(const JsonValue& field) {
    constexpr const char* kForm = "[op, module, phase, thread, inputs, outputs, extra]";
    return each_row(field, 7, kForm, [&](JsonValue::Items::Iterator at) -> Status {
      std::array<std::int64_t, 4> plain{};
      constexpr std::array<std::int64_t, 4> kMost = {UINT32_MAX, UINT32_MAX, kRecordedPhases.size() - 1, 1};
      for (std::size_t index = 0; index < plain.size(); ++index, ++at) {
        if (const Status read = number(*at, plain[index], 0, kMost[index]); !read) return read.error();
      }
      model::RecordedCall call;
      call.op = static_cast<std::uint32_t>(plain[0]);
      fields_.call_modules.push_back(static_cast<std::uint32_t>(plain[1]));
      call.phase = kRecordedPhases[static_cast<std::size_t>(plain[2])].value;
      call.backward_thread = plain[3] == 1;
      for (model::Slice* to : {&call.inputs, &call.outputs, &call.extra}) {
        const auto listed = slice(*at);
        if (!listed) return listed.error();
        *to = *listed;
        ++at;
      }
      fields_.recording.calls.push_back(call);
      return core::Done{};
    });
  }

  /// [name, tensor, trained, allocation, gradient].
  Status read_parameters(const JsonValue& field) {
    constexpr const char* kForm = "[name, tensor, trained, allocation, gradient]";
    return each_row(field, 5, kForm, [&](JsonValue::Items::Iterator at) -> Status {
      std::array<std::int64_t, 5> plain{};
      constexpr std::array<std::int64_t, 5> kLeast = {0, 0, 0, -1, -1};
      for (std::size_t index = 0; index < plain.size(); ++index, ++at) {
        if (const Status read = number(*at, plain[index], kLeast[index], UINT32_MAX); !read) return read.error();
      }
      fields_.recording.parameters.push_back({static_cast<std::uint32_t>(plain[0]),
                                              static_cast<std::uint32_t>(plain[1]), plain[2] != 0, 0, plain[3],
                                              plain[4]});
      return core::Done{};
    });
  }

  /// [call, times].
  Status read_kernels(const JsonValue& field) {
    return each_row(field, 2, "[call, times]", [&](JsonValue::Items::Iterator at) -> Status {
      std::int64_t call = 0;
      std::int64_t times = 0;
      if (const Status read = number(*at, call, 0, UINT32_MAX); !read) return read.error();
      if (const Status read = number(*++at, times, 0, kMostTimes); !read) return read.error();
      fields_.recording.kernels.push_back({static_cast<std::uint32_t>(call), times});
      return core::Done{};
    });
  }

  /// A flat list: each event has its kind first, and then its numbers.
  Status read_events(const JsonValue& field) {
    if (!field.is(Kind::list)) return malformed("must be a list");
    fields_.recording.events.reserve(field.size() / 3);
    constexpr std::array<std::size_t, 6> kNumbers = {4, 1, 1, 2, 1, 2};
    std::array<std::int64_t, 4> of_event{};
    std::size_t kind = 0;
    std::size_t have = 0;
    std::size_t wanted = 0;
    std::size_t index = 0;
    for (const JsonValue& item : field.items()) {
      const auto here = [&](std::string message) { return core::below(index, malformed(std::move(message))); };
      if (!item.is(Kind::integer) || item.integer() < -1 || item.integer() > UINT32_MAX) {
        return here("must be a whole number");
      }
      if (wanted == 0) {
        if (item.integer() < 0 || item.integer() >= static_cast<std::int64_t>(kNumbers.size())) {
          return here("is not a kind of event");
        }
        kind = static_cast<std::size_t>(item.integer());
        wanted = kNumbers[kind];
        have = 0;
      } else {
        of_event[have++] = item.integer();
        if (have == wanted) {
          if (!take_event(kind, of_event))
            return here("ends an event of kind " + std::to_string(kind) + " with a number that is out of range");
          wanted = 0;
        }
      }
      ++index;
    }
    return wanted == 0 ? Status(core::Done{}) : Status(malformed("ends within an event"));
  }
  bool take_event(std::size_t kind, const std::array<std::int64_t, 4>& of) {
    model::RecordedEvent event;
    event.kind = static_cast<model::RecordedEvent::Kind>(kind);
    switch (event.kind) {
      case model::RecordedEvent::Kind::allocate: {
        constexpr auto kUses = static_cast<std::int64_t>(model::kRecordedUses.size());
        if (of[0] < 0 || of[1] < 0 || of[1] > UINT8_MAX || of[2] > INT32_MAX || of[3] < 0 || of[3] >= kUses)
          return false;
        event.what = static_cast<std::uint32_t>(of[0]);
        event.stream = static_cast<std::uint8_t>(of[1]);
        event.call = static_cast<std::int32_t>(of[2]);
        event.detail = static_cast<std::uint8_t>(model::kRecordedUses[static_cast<std::size_t>(of[3])].value);
        fields_.released.push_back(false);
        break;
      }
      case model::RecordedEvent::Kind::release: {
        const auto made = static_cast<std::int64_t>(fields_.released.size());
        if (of[0] < 1 || of[0] > made) return false;
        const auto number = static_cast<std::size_t>(made - of[0]);
        if (fields_.released[number]) return false;
        fields_.released[number] = true;
        event.what = static_cast<std::uint32_t>(number);
        break;
      }
      default: {
        const bool mark = event.kind == model::RecordedEvent::Kind::mark;
        const std::int64_t what = mark ? of[1] : of[0];
        const std::int64_t detail = mark ? of[0] : event.kind == model::RecordedEvent::Kind::library ? of[1] : 0;
        constexpr std::int64_t kMostDetail = 4;
        if (what < 0 || what > INT32_MAX || detail < 0 || detail > (mark ? kMostDetail : 2)) return false;
        event.what = static_cast<std::uint32_t>(what);
        event.detail = static_cast<std::uint8_t>(detail);
      }
    }
    fields_.recording.events.push_back(event);
    return true;
  }

  RecordingFields fields_;
  std::array<bool, kFields> seen_{};
};

}  // namespace recording_fields_detail

inline core::Result<RecordingFields> read_recording_fields(const core::JsonValue& root) {
  return recording_fields_detail::Reader().read(root);
}

}  // namespace gpumem::summary
