// Recurrent layers: torch.nn.LSTM, GRU and RNN. A layer and direction hold weight_ih [G H, I], weight_hh
// [G H, H or P] and two biases [G H], with G gates (4, 3, 1), hidden size H, input I, projection P.
#pragma once

#include <array>

#include "gpumem/ops/op.hpp"

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

/// aten::_cudnn_rnn: all weights in one buffer; keeps its input, its output and a reserve of the gates' values. The
/// reserve's size is cuDNN's own; Gates + 1 states a step, layer and direction is an approximation of ours.
template <std::int64_t Gates>
core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  add_parameters(call, tape, {core::Checked(call.parameters)});
  const std::int64_t layers = std::max<std::int64_t>(call.attributes.integer("num_layers").value_or(1), 1);
  const TensorId input = contiguous(tape, call.tensors[0]);
  const std::array<TensorSize, 1> reserve = {call.size.times(layers).times(Gates + 1)};
  return tape.record({.inputs = {&input, 1},
                      .output = call.size,
                      .saved_inputs = 1,
                      .saves_output = true,
                      .extras = reserve,
                      .parameters = tape.layer_parameters(),
                      .library = Library::gemm,
                      .autocast = Autocast::lower,
                      .contiguous_gradient = true});
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

inline constexpr std::array<Op, 4> kRecurrentOps = {
    {{{"lstm", recurrent_detail::kLstm, recurrent_detail::kKerasLstm, recurrent_detail::kPositional,
       recurrent_detail::parameters<4>, true},
      recurrent_detail::output_shape,
      recurrent_detail::record<4>,
      recurrent_detail::kExpects},
     {{"gru", recurrent_detail::kGru, recurrent_detail::kKerasGru, recurrent_detail::kPositional,
       recurrent_detail::parameters<3>, true},
      recurrent_detail::output_shape,
      recurrent_detail::record<3>,
      recurrent_detail::kExpects},
     {{"rnn", recurrent_detail::kRnn, recurrent_detail::kKerasRnn, recurrent_detail::kPositional,
       recurrent_detail::parameters<1>, true},
      recurrent_detail::output_shape,
      recurrent_detail::record<1>,
      recurrent_detail::kExpects},
     // Keras wraps the recurrent layer and prints neither its kind nor its size beside the parameter count.
     {{"bidirectional", {}, recurrent_detail::kKerasBidirectional, {}, recurrent_detail::parameters<4>},
      recurrent_detail::output_shape,
      recurrent_detail::record<4>}}};

}  // namespace gpumem::ops
