// Recurrent layers: torch.nn.LSTM, GRU and RNN. A layer and direction hold weight_ih [G H, I], weight_hh
// [G H, H or P] and two biases [G H], with G gates (4, 3, 1), hidden size H, input I, projection P.
#pragma once

#include <array>
#include <vector>

#include "gpumem/core/deadline.hpp"
#include "gpumem/ops/matrix.hpp"

namespace gpumem::ops {

namespace recurrent_detail {

inline core::Result<core::Shape> output_shape(const OpInput& input) {
  const auto hidden = input.attributes.integer("hidden_size");
  if (!hidden) return missing("hidden_size");
  core::Shape shape = input.inputs[0];
  if (shape.rank() == 0) return unfit(shape, "at least one axis");
  const std::int64_t projected = input.attributes.integer("proj_size").value_or(0);
  const core::Checked width = core::Checked(projected > 0 ? projected : *hidden) *
                              core::Checked(input.attributes.flag("bidirectional", false) ? 2 : 1);
  if (!width.valid()) return core::Error{core::ErrorCode::overflow, "its hidden_size does not fit 64 bits", {}};
  shape.set(shape.rank() - 1, core::Dim::fixed(*width.value()));
  return shape;
}

template <std::int64_t Gates>
std::optional<core::Checked> parameters(const model::Attributes& attributes) {
  const auto in = attributes.integer("input_size");
  const auto hidden = attributes.integer("hidden_size");
  const std::int64_t layers = attributes.integer("num_layers").value_or(1);
  if (!in || !hidden) return std::nullopt;
  if (layers < 1) return core::Checked(-1);
  const core::Checked directions = attributes.flag("bidirectional", false) ? 2 : 1;
  const std::int64_t projected = attributes.integer("proj_size").value_or(0);
  const core::Checked state = projected > 0 ? projected : *hidden;
  const core::Checked rows = core::Checked(Gates) * core::Checked(*hidden);
  const core::Checked bias = attributes.flag("bias", true) ? core::Checked(2) * rows : core::Checked(0);
  const core::Checked projection = projected > 0 ? core::Checked(*hidden) * state : core::Checked(0);
  const auto cell = [&](const core::Checked& input) { return rows * input + rows * state + bias + projection; };
  const core::Checked deeper = core::Checked(layers - 1);
  return directions * (cell(core::Checked(*in)) + deeper * cell(directions * state));
}

/// What a recurrent layer is built of.
struct Recurrence {
  std::int64_t gates = 1;
  std::int64_t input = 0;
  std::int64_t hidden = 0;
  std::int64_t layers = 1;
  std::int64_t directions = 1;
  std::int64_t steps = 0;
  bool bias = true;
  bool batch_first = false;
  bool drops = false;
  core::Dim batch;

  /// [N, width]: one step's.
  [[nodiscard]] TensorSize step(std::int64_t width) const {
    core::Shape shape;
    shape.push_back(batch);
    shape.push_back(core::Dim::fixed(width));
    return size_of(shape).value_or(TensorSize{});
  }
};

/// Nothing for a layer that only cuDNN is taken to run: one that projects, a single cell, or sizes that are not known.
inline std::optional<Recurrence> recurrence_of(const OpCall& call, std::int64_t gates) {
  constexpr std::int64_t kMostSteps = 1 << 16;
  Recurrence of;
  of.gates = gates;
  of.input = call.shapes[0].rank() > 0 ? call.shapes[0][call.shapes[0].rank() - 1].size : 0;
  of.hidden = call.attributes.integer("hidden_size").value_or(0);
  of.layers = std::max<std::int64_t>(call.attributes.integer("num_layers").value_or(1), 1);
  of.directions = call.attributes.flag("bidirectional", false) ? 2 : 1;
  of.bias = call.attributes.flag("bias", true);
  of.batch_first = call.attributes.flag("batch_first", false);
  of.drops = probability(call.attributes, "dropout").value_or(0.0) > 0.0;
  const core::Shape& shape = call.shapes[0];
  if (shape.rank() != 3 || of.hidden < 1 || call.attributes.integer("proj_size").value_or(0) > 0) return std::nullopt;
  constexpr std::int64_t kMostHidden = std::int64_t{1} << 40;
  if (of.layers > kMostSteps || of.hidden > kMostHidden) return std::nullopt;
  const core::Dim time = shape[of.batch_first ? 1 : 0];
  of.batch = shape[of.batch_first ? 0 : 1];
  of.steps = time.size;
  const bool known = time.kind == core::Dim::Kind::fixed && of.batch.kind != core::Dim::Kind::unknown;
  if (!known || of.steps < 1 || of.steps > kMostSteps / of.layers) return std::nullopt;
  return of;
}

/// Adds the parameters of every layer and direction: weight_ih, weight_hh, bias_ih, bias_hh. False, and none, if the
/// printed count is another.
inline bool add_cells(const OpCall& call, Tape& tape, const Recurrence& of) {
  const core::Checked rows = core::Checked(of.gates) * core::Checked(of.hidden);
  std::vector<core::Checked> elements;
  core::Checked sum = 0;
  for (std::int64_t cell = 0; cell < of.layers * of.directions; ++cell) {
    const std::int64_t in = cell < of.directions ? call.shapes[0][2].size : of.hidden * of.directions;
    elements.push_back(rows * core::Checked(in));
    elements.push_back(rows * core::Checked(of.hidden));
    if (of.bias) elements.insert(elements.end(), {rows, rows});
  }
  for (const core::Checked& count : elements) sum += count;
  if (sum.value() != call.parameters) return false;
  for (const core::Checked& count : elements) tape.add_parameter(count, call.tied_parameters > 0, call.frozen);
  return true;
}

/// Records a layer as aten::lstm, gru and rnn_tanh run it where there is no cuDNN: step by step
/// (ATen/native/RNN.cpp). All steps' input gates are made at once and stay until the layer's steps are stacked.
class Unrolled {
 public:
  Unrolled(Tape& tape, const Recurrence& of) : tape_(tape), of_(of) {
    const TensorSize states = of_.step(of_.hidden * of_.layers * of_.directions);
    hidden_ = tape_.record({.output = states});
    if (of_.gates == kLstmGates) cell_ = tape_.record({.output = states});
  }

  TensorId run(TensorId input) {
    if (of_.batch_first) input = copy(input);
    for (std::int64_t layer = 0; layer < of_.layers; ++layer) {
      if (of_.drops && layer > 0) input = drop(input);
      const bool turned = of_.batch_first && layer == 0;
      std::array<TensorId, 2> outputs{};
      for (std::int64_t direction = 0; direction < of_.directions; ++direction) {
        outputs[static_cast<std::size_t>(direction)] = direct(input, layer * of_.directions + direction, turned);
      }
      input = outputs[0];
      if (of_.directions == 2) input = tape_.record({.inputs = outputs, .output = all(2), .gradient = Gradient::part});
    }
    last(hiddens_);  // h_n and c_n
    last(cells_);
    if (!of_.batch_first) return input;
    const std::array<std::size_t, 2> exchanged = {1, 0};
    return tape_.record({.inputs = {&input, 1},
                         .output = all(of_.directions),
                         .kind = Output::view,
                         .layout = Layout{}.permuted(exchanged),
                         .gradient = Gradient::passed});
  }

 private:
  static constexpr std::int64_t kLstmGates = 4;
  static constexpr std::int64_t kGruGates = 3;

  /// [T, N, width H].
  [[nodiscard]] TensorSize all(std::int64_t width) const { return of_.step(width * of_.hidden).times(of_.steps); }

  TensorId copy(TensorId input) {
    return tape_.record({.inputs = {&input, 1},
                         .output = tape_.tensor(input).size.as(core::DType::float32),
                         .gradient = Gradient::passed});
  }

  TensorId drop(TensorId input) {
    const TensorSize noise = tape_.tensor(input).size;
    return tape_.record({.inputs = {&input, 1}, .output = noise.as(core::DType::float32), .extras = {&noise, 1}});
  }

  /// One direction of one layer: its steps' outputs, stacked.
  TensorId direct(TensorId input, std::int64_t cell, bool turned) {
    const std::size_t tensors = of_.bias ? 4 : 2;
    const auto parameters = tape_.layer_parameters().subspan(static_cast<std::size_t>(cell) * tensors, tensors);
    const std::array<TensorId, 2> of_input = {parameters[0], parameters[of_.bias ? 2 : 0]};
    const std::array<TensorId, 2> of_hidden = {parameters[1], parameters[of_.bias ? 3 : 1]};
    const std::size_t count = of_.bias ? 2 : 1;
    const std::int64_t width = cell < of_.directions ? of_.input : of_.hidden * of_.directions;
    const TensorId gates =
        linear(tape_, input, all(of_.gates), std::span(of_input).first(count), turned ? 4 : 3, of_.bias, width);
    const TensorId steps = parts(gates);
    State state = {start(hidden_), of_.gates == kLstmGates ? start(cell_) : kNoTensor};
    std::vector<TensorId> stacked = {gates};  // named until then
    core::Pace pace;
    for (std::int64_t step = 0; step < of_.steps && !pace.late(); ++step) {
      const TensorId from_input = part(steps, of_.gates);
      state = advance(state, from_input, std::span(of_hidden).first(count));
      stacked.push_back(state.hidden);
    }
    hiddens_.push_back(state.hidden);
    if (state.cell != kNoTensor) cells_.push_back(state.cell);
    return tape_.record({.inputs = stacked, .output = all(1), .gradient = Gradient::part, .no_gradient = 1});
  }

  /// The last states of all layers, which are named until they are stacked; no one reads the stack.
  void last(std::span<const TensorId> states) {
    if (states.empty()) return;
    tape_.record({.inputs = states,
                  .output = of_.step(of_.hidden * static_cast<std::int64_t>(states.size())),
                  .gradient = Gradient::part});
  }

  struct State {
    TensorId hidden = kNoTensor;
    TensorId cell = kNoTensor;
  };

  State advance(const State& state, TensorId from_input, std::span<const TensorId> parameters) {
    const TensorId from_hidden = tape_.record({.inputs = {&state.hidden, 1},
                                               .output = of_.step(of_.gates * of_.hidden),
                                               .saved_inputs = 1,
                                               .parameters = parameters,
                                               .library = Library::gemm,
                                               .multiply_adds = of_.step(of_.gates * of_.hidden).times(of_.hidden)});
    if (of_.gates == kLstmGates) return advance_lstm(state, added(from_hidden, from_input));
    if (of_.gates == kGruGates) return {advance_gru(state, parts(from_hidden), parts(from_input)), kNoTensor};
    return {elementwise(tape_, added(from_hidden, from_input), 0, true), kNoTensor};
  }

  State advance_lstm(const State& state, TensorId gates) {
    const TensorId chunks = parts(gates);
    std::array<TensorId, kLstmGates> gate{};
    for (TensorId& one : gate) one = part(chunks, 1);
    for (TensorId& one : gate) one = activated(one);
    const auto& [in, forget, candidate, out] = gate;
    const TensorId kept = product(tape_, forget, state.cell);
    const TensorId cell = added(kept, product(tape_, in, candidate));
    return {product(tape_, out, elementwise(tape_, cell, 0, true)), cell};
  }

  TensorId advance_gru(const State& state, TensorId from_hidden, TensorId from_input) {
    std::array<TensorId, kGruGates> hidden{};
    std::array<TensorId, kGruGates> input{};
    for (TensorId& one : hidden) one = part(from_hidden, 1);
    for (TensorId& one : input) one = part(from_input, 1);
    const TensorId reset = activated(added(hidden[0], input[0]));
    const TensorId update = activated(added(hidden[1], input[1]));
    const TensorId candidate = activated(sum_of(tape_, input[2], scaled(hidden[2], reset)));
    return added(scaled(sum_of(tape_, state.hidden, candidate), update), candidate);
  }

  /// The tuple of a tensor's parts, and one of them.
  TensorId parts(TensorId whole) {
    return tape_.record({.inputs = {&whole, 1},
                         .output = tape_.tensor(whole).size.as(core::DType::float32),
                         .kind = Output::unsafe_view,
                         .gradient = Gradient::joined});
  }
  TensorId part(TensorId tuple, std::int64_t width) {
    return tape_.record({.inputs = {&tuple, 1},
                         .output = of_.step(width * of_.hidden),
                         .kind = Output::unsafe_view,
                         .gradient = Gradient::passed});
  }
  TensorId start(TensorId states) {
    return tape_.record({.inputs = {&states, 1}, .output = of_.step(of_.hidden), .kind = Output::unsafe_view});
  }
  /// In place: a sum, a sigmoid or tanh, and a product, which keeps a copy of what it overwrites.
  TensorId added(TensorId to, TensorId other) {
    const std::array<TensorId, 2> inputs = {to, other};
    return tape_.record({.inputs = inputs,
                         .output = tape_.tensor(to).size.as(core::DType::float32),
                         .kind = Output::in_place,
                         .gradient = Gradient::passed});
  }
  TensorId activated(TensorId gate) {
    return tape_.record(
        {.inputs = {&gate, 1}, .output = of_.step(of_.hidden), .kind = Output::in_place, .saves_output = true});
  }
  TensorId scaled(TensorId value, TensorId by) {
    const std::array<TensorId, 2> inputs = {value, by};
    const TensorSize overwritten = of_.step(of_.hidden);
    return tape_.record({.inputs = inputs,
                         .output = overwritten,
                         .kind = Output::in_place,
                         .saved_inputs = 2,
                         .extras = {&overwritten, 1}});
  }

  Tape& tape_;
  const Recurrence& of_;
  TensorId hidden_ = kNoTensor;
  TensorId cell_ = kNoTensor;
  std::vector<TensorId> hiddens_;  ///< of the last step, by layer and direction
  std::vector<TensorId> cells_;
};

/// aten::_cudnn_rnn: all weights in one buffer; keeps its input, its output and a reserve of the gates' values. The
/// reserve's size is cuDNN's own; Gates + 1 states a step, layer and direction is an approximation of ours.
template <std::int64_t Gates>
core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  if (tape.backend() == Backend::cpu) {
    const auto of = recurrence_of(call, Gates);
    if (of && add_cells(call, tape, *of)) return Unrolled(tape, *of).run(call.tensors[0]);
  }
  add_parameters(call, tape, {core::Checked(call.parameters)});
  const std::int64_t layers = std::max<std::int64_t>(call.attributes.integer("num_layers").value_or(1), 1);
  const TensorId input = call.tensors[0];
  const core::DType type = tape.computing_type({.inputs = {&input, 1}, .autocast = Autocast::lower});
  // Each step of each sample meets every weight once.
  const TensorSize products = rows_of(call.shapes[0]).value_or(TensorSize{});
  const std::array<TensorSize, 1> reserve = {call.size.times(layers).times(Gates + 1).as(type)};
  return tape.record({.inputs = {&input, 1},
                      .output = call.size,
                      .saved_inputs = 1,
                      .saves_output = true,
                      .extras = reserve,
                      .parameters = tape.layer_parameters(),
                      .library = Library::gemm,
                      .multiply_adds = products.times(call.parameters),
                      .autocast = Autocast::lower,
                      .contiguous_gradient = true,
                      .own_copy = true});
}

inline constexpr std::array<std::string_view, 2> kPositional = {"input_size", "hidden_size"};
inline constexpr std::array<std::string_view, 2> kLstm = {"LSTM", "LSTMCell"};
inline constexpr std::array<std::string_view, 2> kGru = {"GRU", "GRUCell"};
inline constexpr std::array<std::string_view, 2> kRnn = {"RNN", "RNNCell"};
inline constexpr std::array<std::string_view, 3> kKerasLstm = {"LSTM", "CuDNNLSTM", "ConvLSTM2D"};
inline constexpr std::array<std::string_view, 2> kKerasGru = {"GRU", "CuDNNGRU"};
inline constexpr std::array<std::string_view, 1> kKerasRnn = {"SimpleRNN"};
inline constexpr std::array<std::string_view, 1> kKerasBidirectional = {"Bidirectional"};
inline constexpr ExpectedWidth kExpects = {ExpectedWidth::Axis::last, "input_size"};

}  // namespace recurrent_detail

inline constexpr std::array<Op, 4> kRecurrentOps = {{
    {.traits = {.name = "lstm",
                .family = OpFamily::recurrent,
                .torch_classes = recurrent_detail::kLstm,
                .keras_classes = recurrent_detail::kKerasLstm,
                .positional = recurrent_detail::kPositional,
                .parameters = recurrent_detail::parameters<4>,
                .parameters_of_other_names = true,
                .keeps = Keeps::input},
     .output_shape = recurrent_detail::output_shape,
     .record = recurrent_detail::record<4>,
     .expects = recurrent_detail::kExpects},
    {.traits = {.name = "gru",
                .family = OpFamily::recurrent,
                .torch_classes = recurrent_detail::kGru,
                .keras_classes = recurrent_detail::kKerasGru,
                .positional = recurrent_detail::kPositional,
                .parameters = recurrent_detail::parameters<3>,
                .parameters_of_other_names = true,
                .keeps = Keeps::input},
     .output_shape = recurrent_detail::output_shape,
     .record = recurrent_detail::record<3>,
     .expects = recurrent_detail::kExpects},
    {.traits = {.name = "rnn",
                .family = OpFamily::recurrent,
                .torch_classes = recurrent_detail::kRnn,
                .keras_classes = recurrent_detail::kKerasRnn,
                .positional = recurrent_detail::kPositional,
                .parameters = recurrent_detail::parameters<1>,
                .parameters_of_other_names = true,
                .keeps = Keeps::input},
     .output_shape = recurrent_detail::output_shape,
     .record = recurrent_detail::record<1>,
     .expects = recurrent_detail::kExpects},
    // Keras wraps the recurrent layer and prints neither its kind nor its size, only the parameter count.
    {.traits = {.name = "bidirectional",
                .family = OpFamily::recurrent,
                .keras_classes = recurrent_detail::kKerasBidirectional,
                .parameters = recurrent_detail::parameters<4>,
                .keeps = Keeps::input},
     .output_shape = recurrent_detail::output_shape,
     .record = recurrent_detail::record<4>},
}};

}  // namespace gpumem::ops
