#include "gpumem/ops/tape.hpp"

#include <array>
#include <vector>

#include "expect.hpp"
#include "gpumem/ops/op.hpp"

namespace gpumem::ops {
namespace {

using core::DType;
using model::Precision;
using testing::N;
using testing::shape;

constexpr TensorSize kSize = {10, 1, DType::float32};

/// Three calls as a layer makes them: on a parameter, with an extra and scratch; in place; and a view of an input.
TensorId record_layer(Tape& tape, std::span<const TensorId> inputs) {
  const TensorId weight = tape.add_parameter(20, false, false, 9);
  tape.add_buffer(kSize);
  const std::array<TensorSize, 1> more = {kSize.as(DType::boolean)};
  const TensorId product = tape.record({.inputs = inputs,
                                        .output = kSize,
                                        .saved_inputs = 3,
                                        .extras = more,
                                        .scratch = more,
                                        .backward_scratch = more,
                                        .parameters = {&weight, 1},
                                        .library = Library::gemm,
                                        .autocast = Autocast::lower});
  (void)tape.record({.inputs = {&product, 1}, .output = kSize, .kind = Output::in_place, .saves_output = true});
  return tape.record({.inputs = inputs.first(1), .output = kSize, .kind = Output::view});
}

/// All that a tape holds.
std::vector<std::int64_t> figures_of(const Tape& tape) {
  std::vector<std::int64_t> all;
  const auto list = [&](model::Slice slice) {
    all.push_back(slice.count);
    for (const TensorId id : tape.list(slice)) all.push_back(id);
  };
  for (const TapeTensor& tensor : tape.tensors()) {
    all.insert(all.end(), {tensor.size.elements.value().value_or(-1), tensor.storage, tensor.layer,
                           tensor.requires_grad ? 1 : 0, tensor.view ? 1 : 0});
  }
  for (const Function& function : tape.functions()) {
    all.insert(all.end(), {function.layer, function.output, static_cast<int>(function.kind), function.host_weight});
    for (const model::Slice slice : {function.inputs, function.saved, function.extras, function.scratch,
                                     function.backward_scratch, function.parameters}) {
      list(slice);
    }
  }
  for (const Tape::Parameter& parameter : tape.parameters()) all.push_back(parameter.tensor);
  for (const TensorId buffer : tape.buffers()) all.push_back(buffer);
  for (const TensorId parameter : tape.layer_parameters()) all.push_back(parameter);
  return all;
}

std::vector<TensorId> saved_by(const Tape& tape, std::size_t function) {
  const auto list = tape.list(tape.functions()[function].saved);
  return {list.begin(), list.end()};
}

TEST(TensorSize, GrowsWithTheBatchAsOftenAsItsShapeHasIt) {
  EXPECT_EQ(kSize.bytes(3).value(), 120);
  EXPECT_EQ((TensorSize{10, 0, DType::float32}).bytes(3).value(), 40);
  EXPECT_EQ((TensorSize{10, 2, DType::boolean}).bytes(3).value(), 90) << "scores between the samples of a batch";
  EXPECT_EQ(kSize.as(DType::float16).bytes(3).value(), 60);
  EXPECT_EQ(kSize.times(4).bytes(3).value(), 480);
}

TEST(TensorSize, BeyondSixtyFourBitsIsNoNumber) {
  EXPECT_FALSE(kSize.bytes(INT64_MAX / 10).valid());
  EXPECT_FALSE((TensorSize{INT64_MAX, 0, DType::float32}).bytes(1).valid());
}

TEST(SizeOf, CountsElementsAndAxesThatAreTheBatch) {
  const auto size = size_of(shape({N, 3, 4}));
  ASSERT_TRUE(size.has_value());
  EXPECT_EQ(size->elements.value(), 12);
  EXPECT_EQ(size->batch_power, 1);
  EXPECT_EQ(size_of(shape({core::Dim::batch(49), 3}))->elements.value(), 147) << "windows folded into the batch";
  EXPECT_EQ(size_of(core::Shape())->elements.value(), 1) << "a scalar";
  EXPECT_FALSE(size_of(shape({N, core::Dim::unknown()})).has_value());
}

TEST(RowsOf, LeavesOutTheLastAxes) {
  EXPECT_EQ(rows_of(shape({N, 3, 4}))->elements.value(), 3);
  EXPECT_EQ(rows_of(shape({N, 3, 4}), 2)->elements.value(), 1);
  EXPECT_EQ(rows_of(shape({N, 3, 4}), 2)->batch_power, 1);
  EXPECT_EQ(rows_of(shape({4}), 3)->elements.value(), 1) << "no more axes than there are";
  EXPECT_TRUE(rows_of(shape({N, core::Dim::unknown()})).has_value()) << "the last one may be unknown";
}

TEST(Tape, KeepsForAWeightsGradientOnlyWhereTheWeightIsTrained) {
  for (const bool frozen : {false, true}) {
    Tape tape;
    tape.begin_layer(0);
    const TensorId weight = tape.add_parameter(10, false, frozen);
    const TensorId bias = tape.add_parameter(10);
    const TensorId input = tape.add_input(kSize);
    const std::array<TensorId, 2> parameters = {weight, bias};
    tape.record({.inputs = {&input, 1}, .output = kSize, .saved_for_weight = 1, .parameters = parameters});
    EXPECT_EQ(saved_by(tape, 0).empty(), frozen) << "a trained bias does not read the input";
    EXPECT_TRUE(tape.tensor(tape.functions()[0].output).requires_grad) << "of the bias";
  }
}

TEST(Tape, ParametersMayHaveATypeOfTheirOwn) {
  Tape tape(Precision::amp_bf16);
  tape.begin_layer(0);
  const TensorId half = tape.add_parameter(10, false, true, 0, DType::bfloat16);
  const TensorId ids = tape.add_input({10, 1, DType::int64});
  EXPECT_EQ(tape.tensor(half).size.dtype, DType::bfloat16);
  const TensorId looked_up = tape.record({.inputs = {&ids, 1}, .output = kSize, .parameters = {&half, 1}});
  EXPECT_EQ(tape.tensor(looked_up).size.dtype, DType::bfloat16) << "an embedding's type";
  const TensorId input = tape.add_input(kSize);
  const auto casts = [&](TensorId parameter) {
    tape.record({.inputs = {&input, 1},
                 .output = kSize,
                 .parameters = {&parameter, 1},
                 .library = Library::gemm,
                 .autocast = Autocast::lower});
    return tape.functions().back().casts_parameters;
  };
  EXPECT_FALSE(casts(half)) << "it has autocast's type already";
  EXPECT_TRUE(casts(tape.add_parameter(10)));
  EXPECT_FALSE(casts(tape.add_parameter(10, false, true, 0, DType::uint8))) << "a quantised weight";
  EXPECT_EQ(tape.product_dtype(), DType::bfloat16);
  EXPECT_EQ(Tape().product_dtype(), DType::float32);
}

TEST(Tape, AFrozenLayersOutputCanBeMadeToNeedAGradient) {
  Tape tape;
  const TensorId frozen = tape.add_parameter(10, false, true);
  const TensorId input = tape.add_input(kSize);
  const TensorId output = tape.record({.inputs = {&input, 1}, .output = kSize, .parameters = {&frozen, 1}});
  EXPECT_FALSE(tape.tensor(output).requires_grad);
  tape.require_grad(output);
  EXPECT_TRUE(tape.tensor(output).requires_grad);
  EXPECT_TRUE(tape.tensor(elementwise(tape, output)).requires_grad);
}

TEST(Layout, IsBackInOrderWhenItsAxesAre) {
  const std::array<std::size_t, 4> heads_first = {0, 2, 1, 3};
  const Layout turned = Layout{}.permuted(heads_first);
  EXPECT_TRUE(Layout{}.dense());
  EXPECT_FALSE(turned.dense());
  EXPECT_EQ(turned.axis_at(1), 2U) << "[N, heads, S, d] lies as [N, S, heads, d]";
  EXPECT_TRUE(turned.permuted(heads_first).dense());
  const std::array<std::size_t, 3> cycle = {1, 2, 0};
  EXPECT_FALSE(Layout{}.permuted(cycle).permuted(cycle).dense());
  EXPECT_TRUE(Layout{}.permuted(cycle).permuted(cycle).permuted(cycle).dense());
}

TEST(Layout, MergesLeadingAxesThatAreOneRun) {
  const std::array<std::size_t, 4> last_two = {0, 1, 3, 2};
  const std::array<std::size_t, 4> heads_first = {0, 2, 1, 3};
  EXPECT_TRUE(Layout{}.leading_axes_merge(3));
  EXPECT_TRUE(Layout{}.permuted(last_two).leading_axes_merge(2)) << "a transposed matrix: the batches are one run";
  EXPECT_FALSE(Layout{}.permuted(heads_first).leading_axes_merge(2));
  EXPECT_FALSE((Layout{Layout::kInOrder, true}).leading_axes_merge(2)) << "gaps";
}

TEST(Tape, AViewHasItsBasesStorage) {
  Tape tape;
  const TensorId input = tape.add_input(kSize);
  const TensorId view = tape.record({.inputs = {&input, 1}, .output = kSize, .kind = Output::view});
  const TensorId again = tape.record({.inputs = {&view, 1}, .output = kSize, .kind = Output::view});
  const TensorId fresh = elementwise(tape, again);
  EXPECT_EQ(tape.tensor(view).storage, input);
  EXPECT_EQ(tape.tensor(again).storage, input);
  EXPECT_EQ(tape.tensor(fresh).storage, fresh);
  EXPECT_TRUE(tape.tensor(again).view);
  EXPECT_FALSE(tape.tensor(fresh).view);
}

TEST(Tape, AGradientIsNeededBehindWhatIsTrained) {
  Tape tape;
  const TensorId input = tape.add_input(kSize);
  const TensorId before = elementwise(tape, input);
  const TensorId weight = tape.add_parameter(10);
  const TensorId frozen = tape.add_parameter(10, false, true);
  const auto with = [&](const TensorId& parameter) {
    return tape.record({.inputs = {&before, 1}, .output = kSize, .parameters = {&parameter, 1}});
  };
  EXPECT_FALSE(tape.tensor(before).requires_grad);
  EXPECT_TRUE(tape.tensor(with(weight)).requires_grad);
  EXPECT_FALSE(tape.tensor(with(frozen)).requires_grad);
  const TensorId trained = with(weight);
  EXPECT_TRUE(tape.tensor(elementwise(tape, trained)).requires_grad);
  EXPECT_FALSE(tape.tensor(tape.record({.inputs = {&trained, 1}, .output = kSize, .no_gradient = 1})).requires_grad);
  EXPECT_FALSE(
      tape.tensor(tape.record({.inputs = {&trained, 1}, .output = kSize, .differentiable = false})).requires_grad);
}

TEST(Tape, KeepsInputsOutputAndWhatIsMadeBeside) {
  Tape tape;
  const std::array<TensorId, 2> inputs = {tape.add_input(kSize), tape.add_input(kSize)};
  const TensorSize mask = kSize.as(DType::boolean);
  const TensorId output =
      tape.record({.inputs = inputs, .output = kSize, .saved_inputs = 2, .saves_output = true, .extras = {&mask, 1}});
  const auto saved = saved_by(tape, 0);
  ASSERT_EQ(saved.size(), 3U);
  EXPECT_EQ(saved[0], inputs[1]);
  EXPECT_EQ(saved[1], output);
  EXPECT_EQ(tape.tensor(saved[2]).size.bytes(2).value(), 20) << "a mask keeps its type";
}

TEST(Tape, AutocastLowersMatrixProductsAndKeepsTheParametersType) {
  Tape tape(Precision::amp_fp16);
  const TensorId input = tape.add_input(kSize);
  const TensorId weight = tape.add_parameter(10);
  const TensorId output = tape.record({.inputs = {&input, 1},
                                       .output = kSize,
                                       .saved_inputs = 1,
                                       .parameters = {&weight, 1},
                                       .autocast = Autocast::lower});
  ASSERT_EQ(tape.functions().size(), 2U) << "the cast of the input is a function of its own";
  EXPECT_EQ(tape.tensor(output).size.dtype, DType::float16);
  EXPECT_EQ(tape.tensor(weight).size.dtype, DType::float32);
  EXPECT_TRUE(tape.functions()[1].casts_parameters);
  EXPECT_EQ(saved_by(tape, 1)[0], tape.functions()[0].output) << "the cast one is kept";
  const TensorId full = elementwise(tape, output, 0, true, Autocast::full);
  EXPECT_EQ(tape.tensor(full).size.dtype, DType::float32);
  EXPECT_EQ(tape.functions().size(), 4U);
  const TensorId promoted = sum_of(tape, output, full);
  EXPECT_EQ(tape.tensor(promoted).size.dtype, DType::float32) << "the widest of its inputs";
  EXPECT_EQ(tape.tensor(elementwise(tape, output)).size.dtype, DType::float16);
}

TEST(Tape, PureBfloat16NeedsNoCasts) {
  Tape tape(Precision::bf16);
  const TensorId input = tape.add_input(kSize.as(DType::bfloat16));
  const TensorId weight = tape.add_parameter(10);
  const TensorId output =
      tape.record({.inputs = {&input, 1}, .output = kSize, .parameters = {&weight, 1}, .autocast = Autocast::lower});
  EXPECT_EQ(tape.functions().size(), 1U);
  EXPECT_EQ(tape.tensor(weight).size.dtype, DType::bfloat16);
  EXPECT_EQ(tape.tensor(output).size.dtype, DType::bfloat16);
  EXPECT_FALSE(tape.functions()[0].casts_parameters);
}

TEST(Tape, CastsWhatIsFloatingAndOfAnotherType) {
  Tape tape;
  const TensorId ids = tape.add_input(kSize.as(DType::int64));
  const TensorId values = tape.add_input(kSize);
  EXPECT_EQ(tape.cast(ids, DType::float32), ids);
  EXPECT_EQ(tape.cast(values, DType::float32), values);
  EXPECT_NE(tape.cast(values, DType::float16), values);
}

TEST(Tape, ProductsOfFloat64AreFloat64) {
  for (const Precision precision : {Precision::bf16, Precision::amp_bf16}) {
    Tape tape(precision);
    const TensorId input = tape.add_input(kSize);
    const TensorId wide[] = {tape.cast(input, DType::float64), tape.add_input(kSize.as(DType::float64))};
    const TensorId product = tape.record({.inputs = wide, .output = kSize});
    EXPECT_EQ(tape.tensor(product).size.dtype, DType::float64);
    EXPECT_EQ(tape.tensor(tape.cast(product, DType::bfloat16)).size.dtype, DType::bfloat16);
    (void)tape.record({.inputs = {&product, 1}, .output = kSize, .autocast = Autocast::lower});
    EXPECT_EQ(tape.functions().size(), 4U) << "two casts, the product, and a call whose input autocast leaves as it is";
  }
}

TEST(Tape, WritingToAViewRewritesItsBasesHistory) {
  Tape tape;
  const TensorId weight = tape.add_parameter(10);
  const TensorId input = tape.add_input(kSize);
  const TensorId base = tape.record({.inputs = {&input, 1}, .output = kSize, .parameters = {&weight, 1}});
  const TensorId view =
      tape.record({.inputs = {&base, 1}, .output = kSize, .kind = Output::view, .gradient = Gradient::passed});
  const std::size_t before = tape.functions().size();
  const TensorId written =
      tape.record({.inputs = {&view, 1}, .output = kSize, .kind = Output::in_place, .saves_output = true});
  ASSERT_EQ(tape.functions().size(), before + 2) << "the write, and the view of what was written";
  EXPECT_EQ(tape.functions()[before].backward_scratch.count, 2U) << "the part cut out, and its gradient";
  EXPECT_EQ(tape.tensor(written).storage, base);
  EXPECT_TRUE(tape.tensor(written).view);
  const TensorId plain =
      tape.record({.inputs = {&base, 1}, .output = kSize, .kind = Output::in_place, .saves_output = true});
  EXPECT_EQ(tape.functions().size(), before + 3);
  EXPECT_FALSE(tape.tensor(plain).view);
}

TEST(Tape, AnUnsafeViewIsWrittenToAsItIs) {
  Tape tape;
  const TensorId input = tape.add_input(kSize);
  const TensorId chunk = tape.record({.inputs = {&input, 1}, .output = kSize, .kind = Output::unsafe_view});
  tape.record({.inputs = {&chunk, 1}, .output = kSize, .kind = Output::in_place});
  EXPECT_EQ(tape.functions().size(), 2U);
}

TEST(Tape, AKernelsOwnMemoryIsSeenOnAGpuOnly) {
  for (const Backend backend : {Backend::cuda, Backend::cpu}) {
    Tape tape(Precision::fp32, backend);
    const TensorId input = tape.add_input(kSize);
    const TensorId gaps =
        tape.record({.inputs = {&input, 1}, .output = kSize, .kind = Output::view, .layout = {Layout::kInOrder, true}});
    tape.record({.inputs = {&gaps, 1}, .output = kSize, .saved_inputs = 1, .own_copy = true});
    const Function& function = tape.functions().back();
    const std::uint32_t expected = backend == Backend::cuda ? 1 : 0;
    EXPECT_EQ(tape.own_scratch({&kSize, 1}).size(), expected);
    EXPECT_EQ(function.scratch.count, expected) << "the copy that puts the input in order";
    EXPECT_EQ(function.backward_scratch.count, expected);
    EXPECT_EQ(saved_by(tape, 1)[0], gaps) << "autograd keeps what the program gave, not the copy";
  }
}

TEST(Contiguous, CopiesWhatIsNotInOrder) {
  Tape tape;
  const TensorId input = tape.add_input(kSize);
  const std::array<std::size_t, 2> exchanged = {1, 0};
  const TensorId turned = tape.record(
      {.inputs = {&input, 1}, .output = kSize, .kind = Output::view, .layout = Layout{}.permuted(exchanged)});
  EXPECT_EQ(contiguous(tape, input), input);
  const TensorId copy = contiguous(tape, turned);
  EXPECT_NE(copy, turned);
  EXPECT_TRUE(tape.tensor(copy).layout.dense());
}

TEST(Product, KeepsEachFactorForTheOthersGradient) {
  Tape tape;
  const TensorId data = tape.add_input(kSize);
  const TensorId weight = tape.add_parameter(10);
  const TensorId trained = tape.record({.inputs = {&data, 1}, .output = kSize, .parameters = {&weight, 1}});
  product(tape, trained, data);
  EXPECT_EQ(saved_by(tape, 1), std::vector<TensorId>({data})) << "the data needs no gradient: its factor is not kept";
  product(tape, trained, trained);
  EXPECT_EQ(saved_by(tape, 2).size(), 2U);
}

constexpr std::array<std::size_t, 4> kChannelsLast = {0, 3, 1, 2};  // of [N, H, W, C]

TEST(Layout, FollowsAnAxisThatIsTakenApartOrDropped) {
  const Layout heads = Layout{}.permuted(std::array<std::size_t, 4>{0, 2, 1, 3});  // [N, S, h, d] seen as [N, h, S, d]
  EXPECT_EQ(heads.regrouped(3, 2).order, 0x76543120U) << "h, S, d1, d2: the last axis in two";
  EXPECT_EQ(heads.with_axis(1).regrouped(1, 0), heads) << "an axis that comes and goes";
  EXPECT_TRUE(Layout{}.with_axis(2).dense());
  EXPECT_TRUE(Layout{}.regrouped(1, 3).dense());
}

TEST(Layout, JoinsAxesThatLieSideBySide) {
  const Layout heads = Layout{}.permuted(std::array<std::size_t, 4>{0, 2, 1, 3});
  EXPECT_FALSE(heads.merged(1, 2)) << "the tokens lie outside of the heads";
  EXPECT_FALSE((Layout{Layout::kInOrder, true}).merged(0, 1)) << "gaps";
  ASSERT_TRUE(Layout{}.merged(0, 2));
  EXPECT_TRUE(Layout{}.merged(0, 2)->dense());
  const Layout innermost = Layout{}.permuted(kChannelsLast);
  ASSERT_TRUE(innermost.merged(2, 3)) << "height and width";
  EXPECT_EQ(*innermost.merged(2, 3), Layout{}.permuted(std::array<std::size_t, 3>{0, 2, 1}));
}

TEST(Layout, IsViewedAsPyTorchViews) {
  const Layout turned = Layout{}.permuted(std::array<std::size_t, 3>{0, 2, 1});  // [N, C, S] of [N, S, C]
  const auto image = turned.viewed(shape({N, 6, 20}), shape({N, 6, 4, 5}));
  ASSERT_TRUE(image) << "one axis in two";
  EXPECT_TRUE(image->channels_last(4));
  EXPECT_FALSE(turned.viewed(shape({N, 6, 20}), shape({N, 120}))) << "joined, out of order";
  EXPECT_FALSE(turned.viewed(shape({N, 6, 20}), shape({N, 8, 15}))) << "across two axes";
  ASSERT_TRUE(Layout{}.viewed(shape({N, 6, 20}), shape({N, 8, 15})));
  EXPECT_TRUE(Layout{}.viewed(shape({N, 6, 20}), shape({N, 8, 15}))->dense());
}

TEST(Layout, KnowsImagesWithChannelsInnermost) {
  EXPECT_TRUE(Layout{}.permuted(kChannelsLast).channels_last(4));
  EXPECT_FALSE(Layout{}.channels_last(4));
  EXPECT_FALSE(Layout{}.permuted(std::array<std::size_t, 4>{0, 1, 3, 2}).channels_last(4));
}

TEST(Tape, NewMemoryHasNoGaps) {
  Tape tape;
  const TensorId whole = tape.add_input(kSize);
  const TensorId part =
      tape.record({.inputs = {&whole, 1}, .output = kSize, .kind = Output::view, .layout = {Layout::kInOrder, true}});
  EXPECT_FALSE(tape.tensor(part).layout.dense());
  EXPECT_TRUE(tape.tensor(elementwise(tape, part)).layout.dense());
}

TEST(Tape, RepeatsTheCallsOfALayerAsTheyWouldBeRecordedAgain) {
  for (const Precision precision : {Precision::fp32, Precision::amp_bf16}) {
    Tape recorded(precision);
    Tape repeated(precision);
    LayerCalls calls;
    for (Tape* tape : {&recorded, &repeated}) {
      std::vector<TensorId> inputs = {tape->add_input(kSize), tape->add_input(kSize)};
      for (std::uint32_t layer = 0; layer < 4; ++layer) {
        tape->begin_layer(layer);
        const bool again = tape == &repeated && layer >= 2;  // layer 1 is the first whose input needs a gradient
        if (again) {
          ASSERT_TRUE(tape->reads_alike(calls, inputs));
        }
        const TapeMark first = tape->mark();
        const TensorId output = again ? tape->repeat(calls, inputs) : record_layer(*tape, inputs);
        if (!again) calls = {first, tape->mark(), inputs, output};
        inputs[0] = output - 1;  // what was written in place
      }
    }
    EXPECT_EQ(figures_of(repeated), figures_of(recorded));
  }
}

TEST(Tape, CallsAreRepeatedOnlyWhereTheyReadTheSame) {
  Tape tape;
  const std::array<TensorId, 3> inputs = {tape.add_input(kSize), tape.add_input(kSize), tape.add_input(kSize.times(2))};
  const std::vector<TensorId> read = {inputs[0], inputs[1]};
  const TapeMark first = tape.mark();
  const TensorId output = record_layer(tape, read);
  const LayerCalls calls = {first, tape.mark(), read, output};
  const auto alike = [&](const std::vector<TensorId>& others) { return tape.reads_alike(calls, others); };
  EXPECT_TRUE(alike({inputs[1], inputs[0]}));
  EXPECT_FALSE(alike({inputs[0]}));
  EXPECT_FALSE(alike({inputs[0], inputs[2]})) << "of another size";
  EXPECT_FALSE(alike({inputs[0], inputs[0]})) << "one tensor in two places";
  const std::array<TensorId, 1> viewed = {inputs[0]};
  const TensorId view = tape.record({.inputs = viewed, .output = kSize, .kind = Output::unsafe_view});
  EXPECT_FALSE(alike({inputs[0], view})) << "two tensors of one memory";
  tape.require_grad(inputs[2]);
  EXPECT_FALSE(alike(read)) << "a tensor has changed since";
}

/// By unsloth_zoo's get_chunk_size(): the number of chunks of logits that take so many MiB in float32.
TEST(TensorSize, IsMadeInAsManyChunksAsUnslothMakes) {
  constexpr std::int64_t kMib = (std::int64_t{1} << 20) / 4;
  const auto up = [](std::int64_t mib, std::int64_t more = 0) { return Chunks{1024, false}.count(mib * kMib + more); };
  EXPECT_EQ(up(1024), 1) << "it fits";
  EXPECT_EQ(up(1024, 1), 4) << "else a multiple of four";
  EXPECT_EQ(up(4096), 4);
  EXPECT_EQ(up(4096, 1), 8);
  const auto nearest = [](std::int64_t mib) { return Chunks{1024, true}.count(mib * kMib); };
  EXPECT_EQ(nearest(2048), 1) << "half of four is rounded to even, none, and one is the least";
  EXPECT_EQ(nearest(2049), 4);
  EXPECT_EQ(nearest(6143), 4);
  EXPECT_EQ(nearest(6144), 8) << "one and a half times four is rounded to even, two";
  EXPECT_EQ(nearest(10240), 8);
  EXPECT_EQ(Chunks().count(INT64_MAX), 1);
}

TEST(TensorSize, OfAChunkIsAPartThatMayBeLargerInASmallerBatch) {
  constexpr std::int64_t kElements = 262144;  // a MiB in float32
  const TensorSize size = {kElements, 1, DType::float16, {4, false}};
  EXPECT_EQ(size.bytes(4).value(), 4 * kElements * 2);
  EXPECT_EQ(size.bytes(5).value(), 5 * kElements * 2 / 4) << "four chunks";
  EXPECT_EQ(size.more_in_smaller_batches(4), 0);
  EXPECT_EQ(size.more_in_smaller_batches(5), (4 * 4 - 5) * kElements * 2 / 4) << "a batch of four is one";
  EXPECT_EQ((TensorSize{kElements, 1, DType::float16, {4, true}}).more_in_smaller_batches(16), 4 * kElements * 2)
      << "a batch of eight is one, that of 16 is four";
  EXPECT_EQ(size.bytes(INT64_MAX).value(), std::nullopt);
}

}  // namespace
}  // namespace gpumem::ops
