#include "gpumem_datasets/pickle.hpp"

#include <gtest/gtest.h>

#include "checkpoints.hpp"
#include "expect.hpp"

namespace gpumem::datasets {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::kEmptyOrderedDict;
using testing::kProto;
using testing::little_endian;
using testing::pickle_global;
using testing::pickle_integer;
using testing::pickle_storage;
using testing::pickle_tensor;
using testing::pickle_text;
using testing::pickle_tuple;
using testing::succeeds;
using namespace std::string_literals;

/// What the opcodes make, as one text: {'a': [1, True], 'b': (None, 0.5)}. Shared values are written again.
std::string written(const Pickle& pickle, const PickleValue& value) {
  const auto list = [&](char open, char close) {
    std::string text(1, open);
    for (const PickleIndex item : value.items) {
      text += (text.size() > 1 ? " " : "") + written(pickle, pickle.at(item));
    }
    return text + close;
  };
  switch (value.kind) {
    case PickleKind::none: return "None";
    case PickleKind::boolean: return value.integer == 1 ? "True" : "False";
    case PickleKind::integer: return std::to_string(value.integer);
    case PickleKind::number: return std::to_string(value.number);
    case PickleKind::text: return "'" + std::string(value.text) + "'";
    case PickleKind::tuple: return list('(', ')');
    case PickleKind::list: return list('[', ']');
    case PickleKind::dict: return list('{', '}');
    case PickleKind::storage: return "storage " + std::string(value.text);
    case PickleKind::tensor: return "tensor in " + std::string(pickle.tensor(value).storage);
    case PickleKind::global:
      return "global " + std::string(kPickleGlobals[static_cast<std::size_t>(value.integer)].name);
  }
  return "?";
}

std::string value_of(const std::string& opcodes) {
  const std::string bytes = kProto + opcodes + ".";
  const auto pickle = parse_pickle(bytes);
  return pickle ? written(*pickle, pickle->at(pickle->root())) : core::to_string(pickle.error());
}

::testing::AssertionResult refused(const std::string& opcodes, std::string_view part) {
  return fails(parse_pickle(kProto + opcodes, "t.ckpt"), ErrorCode::malformed_input, 0, part);
}

TEST(Pickle, MakesPlainValues) {
  EXPECT_EQ(value_of("N"), "None");
  EXPECT_EQ(value_of("\x88"), "True");
  EXPECT_EQ(value_of("\x89"), "False");
  EXPECT_EQ(value_of("K\xFF"), "255");
  EXPECT_EQ(value_of("M\x01\x80"), "32769");
  EXPECT_EQ(value_of(pickle_integer(-2)), "-2");
  EXPECT_EQ(value_of("\x8A\0"s), "0");
  EXPECT_EQ(value_of("\x8A\x01\xFE"), "-2");
  EXPECT_EQ(value_of("\x8A\x08" + little_endian(INT64_MAX, 8)), std::to_string(INT64_MAX));
  EXPECT_EQ(value_of("G\x3F\xE0\0\0\0\0\0\0"s), "0.500000");
  EXPECT_EQ(value_of(pickle_text("na\xC3\xAFve")), "'na\xC3\xAFve'");
}

TEST(Pickle, MakesContainers) {
  EXPECT_EQ(value_of(")"), "()");
  EXPECT_EQ(value_of("K\1\x85"), "(1)");
  EXPECT_EQ(value_of("K\1K\2\x86"), "(1 2)");
  EXPECT_EQ(value_of("K\1K\2K\3\x87"), "(1 2 3)");
  EXPECT_EQ(value_of("(K\1K\2K\3K\4t"), "(1 2 3 4)");
  EXPECT_EQ(value_of("]K\1a(K\2K\3e"), "[1 2 3]");
  EXPECT_EQ(value_of("}K\1Ns(K\2NK\3)u"), "{1 None 2 None 3 ()}");
  EXPECT_EQ(value_of("((tt"), "(())");
}

TEST(Pickle, RemembersValues) {
  EXPECT_EQ(value_of("](K\7q\1h\1h\1e"), "[7 7 7]");
  EXPECT_EQ(value_of("](K\7r\1\1\1\1j\1\1\1\1e"s), "[7 7]");
}

TEST(Pickle, KnowsWhatACheckpointNames) {
  EXPECT_EQ(value_of(kEmptyOrderedDict + "K\1K\2s"), "{1 2}");
  EXPECT_EQ(value_of(kEmptyOrderedDict + "}" + pickle_text("_metadata") + ")sb"), "{}");
  EXPECT_EQ(value_of(pickle_global("torch", "HalfStorage")), "global HalfStorage");
  EXPECT_EQ(value_of(pickle_storage("FloatStorage", "12", 6)), "storage 12");
}

TEST(Pickle, MakesTensors) {
  const std::string bytes = kProto + pickle_tensor(pickle_storage("LongStorage", "5", 7), 1, {2, 3}, {3, 1}) + ".";
  const auto pickle = parse_pickle(bytes);
  ASSERT_TRUE(succeeds(pickle));
  const PickleTensor& tensor = pickle->tensor(pickle->at(pickle->root()));
  EXPECT_EQ(tensor.dtype, core::DType::int64);
  EXPECT_EQ(tensor.storage, "5");
  EXPECT_EQ(tensor.storage_elements, 7);
  EXPECT_EQ(tensor.offset, 1);
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(tensor.strides, (std::vector<std::int64_t>{3, 1}));
}

TEST(Pickle, FindsWhatADictHolds) {
  const std::string bytes =
      kProto + "}(" + pickle_text("a") + "K\1" + pickle_text("b") + "K\2" + pickle_text("a") + "K\3u.";
  const auto pickle = parse_pickle(bytes);
  ASSERT_TRUE(succeeds(pickle));
  const PickleValue& dict = pickle->at(pickle->root());
  ASSERT_NE(pickle->find(dict, "a"), nullptr);
  EXPECT_EQ(pickle->find(dict, "a")->integer, 3);
  EXPECT_EQ(pickle->find(dict, "c"), nullptr);
  EXPECT_EQ(pickle->find(pickle->at(dict.items[0]), "a"), nullptr);
}

TEST(Pickle, RunsNothing) {
  const std::string attack = pickle_global("posix", "system") + pickle_text("touch /tmp/never") + "\x85R.";
  EXPECT_TRUE(refused(attack, "names 'posix' 'system', which no weights need; none of it was run"));
  EXPECT_TRUE(refused(attack, "(byte 2)"));
  EXPECT_TRUE(refused(pickle_global("builtins", "eval") + ".", "'eval'"));
  EXPECT_TRUE(refused(pickle_global("torch", "load") + ".", "'load'"));
  EXPECT_TRUE(refused(pickle_global("torch._utils", "FloatStorage") + ".", "'FloatStorage'"));
  EXPECT_TRUE(refused("cevil\x1B[2J\n\n.", "'evil?[2J'"));
  // Names that it knows call nothing either, out of their place.
  EXPECT_TRUE(refused(pickle_global("torch", "FloatStorage") + ")R.", "calls something that is not a function"));
  EXPECT_TRUE(refused(pickle_text("print") + ")R.", "calls something that is not a function"));
  EXPECT_TRUE(
      refused("i"
              "os\nsystem\n.",
              "opcode 105"));
  EXPECT_TRUE(refused(")\x81.", "opcode 129"));
  EXPECT_TRUE(refused("\x82\x01.", "opcode 130"));
}

TEST(Pickle, ReadsProtocolTwoAlone) {
  EXPECT_TRUE(fails(parse_pickle(""), ErrorCode::malformed_input, 0, "is cut off"));
  EXPECT_TRUE(fails(parse_pickle("N."), ErrorCode::malformed_input, 0, "does not begin with its protocol"));
  EXPECT_TRUE(fails(parse_pickle("\x80\4N."), ErrorCode::malformed_input, 0, "protocol 4"));
  EXPECT_TRUE(refused("\x80\2N.", "names its protocol twice"));
  EXPECT_TRUE(refused("N.N", "continues after its end"));
}

TEST(Pickle, NoPrefixIsAPickle) {
  const std::string whole = kProto + "}(" + pickle_text("w") +
                            pickle_tensor(pickle_storage("FloatStorage", "0", 1), 0, {1}, {1}) + pickle_text("n") +
                            "\x8A\x02\1\1" + "G12345678" + "q\1j\1\0\0\0"s + "u.";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(parse_pickle(whole.substr(0, length))) << length;
  }
}

TEST(Pickle, RefusesAStackThatHoldsTooLittle) {
  for (const char* opcodes : {".", "\x85.", "N\x86.", "NN\x87.", "Na.", "]a.", "}Ns.", "NR.", "}b.", "Q.", "q\1."}) {
    EXPECT_FALSE(parse_pickle(kProto + opcodes)) << opcodes;
  }
  EXPECT_TRUE(refused("t.", "ends a group that was never begun"));
  EXPECT_TRUE(refused("NN.", "does not hold just one value"));
  EXPECT_TRUE(refused("N(.", "does not hold just one value"));
  // A mark hides what lies below it.
  EXPECT_TRUE(refused("N(\x85.", "takes a value where there is none"));
  EXPECT_TRUE(refused("](Na.", "takes a value where there is none"));
  EXPECT_TRUE(refused("(Ne.", "takes a value where there is none"));
}

TEST(Pickle, RefusesItemsWhereNoneGo) {
  EXPECT_TRUE(refused(")Na.", "adds items to what does not take them"));
  EXPECT_TRUE(refused("]NNs.", "adds items to what does not take them"));
  EXPECT_TRUE(refused("}(NNNu.", "a key without a value"));
  EXPECT_TRUE(refused("]}b.", "sets attributes of what has none"));
  EXPECT_TRUE(refused("h\1.", "recalls a value that it never remembered"));
  EXPECT_TRUE(refused("\x8A\x09" + std::string(9, '\1') + ".", "more than 64 bits"));
}

TEST(Pickle, RefusesTensorsThatAreNone) {
  const std::string storage = pickle_storage("FloatStorage", "0", 4);
  EXPECT_TRUE(refused(pickle_tensor(storage, -1, {1}, {1}) + ".", "that no tensor has"));
  EXPECT_TRUE(refused(pickle_tensor(storage, 0, {-1}, {1}) + ".", "that no tensor has"));
  EXPECT_TRUE(refused(pickle_tensor(storage, 0, {1}, {-1}) + ".", "that no tensor has"));
  EXPECT_TRUE(refused(pickle_tensor(storage, 0, {1, 1}, {1}) + ".", "that no tensor has"));
  EXPECT_TRUE(refused(pickle_tensor("N", 0, {1}, {1}) + ".", "that no tensor has"));
  const std::vector<std::int64_t> long_shape(kMostTensorDimensions + 1, 1);
  EXPECT_TRUE(refused(pickle_tensor(storage, 0, long_shape, long_shape) + ".", "that no tensor has"));
  EXPECT_TRUE(
      refused(pickle_global("torch._utils", "_rebuild_tensor_v2") + ")R.", "in a way that torch.save does not"));
  EXPECT_TRUE(refused(pickle_global("collections", "OrderedDict") + "N\x85R.", "in a way that torch.save does not"));
  EXPECT_TRUE(refused(pickle_storage("FloatStorage", "0", -1) + ".", "that is not a storage"));
  EXPECT_TRUE(refused("(" + pickle_text("storage") + pickle_global("collections", "OrderedDict") + pickle_text("0") +
                          pickle_text("cpu") + "K\1tQ.",
                      "that is not a storage"));
  EXPECT_TRUE(refused("NQ.", "that is not a storage"));
}

TEST(Pickle, RefusesValuesThatHoldThemselves) {
  EXPECT_TRUE(refused("]q\1h\1a.", "holds itself"));
  EXPECT_TRUE(refused("}q\1K\1]h\1as.", "holds itself"));
  // Held twice is not held by itself.
  EXPECT_EQ(value_of("]q\1h\1\x86"), "([] [])");
}

TEST(Pickle, BoundsTheDepth) {
  const auto nested = [](std::size_t depth) { return "N" + std::string(depth - 1, '\x85') + "."; };
  EXPECT_TRUE(succeeds(parse_pickle(kProto + nested(kDeepestPickle))));
  EXPECT_TRUE(refused(nested(kDeepestPickle + 1), "more than 100 deep"));
  EXPECT_TRUE(refused(nested(900'000), "more than 100 deep"));
  // Shared values count at their deepest.
  std::string shared = "](";
  for (std::size_t level = 0; level < kDeepestPickle + 5; ++level) shared += level == 0 ? "Nq\1" : "h\1\x85q\1";
  EXPECT_TRUE(refused(shared + "e.", "more than 100 deep"));
}

TEST(Pickle, SharingIsNotCopying) {
  // Each list holds the one before it twice: 2^60 leaves on 61 values.
  std::string bomb = "]q\1";
  for (int level = 0; level < 60; ++level) bomb += "](h\1h\1eq\1";
  const std::string outer = kProto + "(" + bomb + "t\x85.";
  const auto pickle = parse_pickle(outer);
  ASSERT_TRUE(succeeds(pickle));
}

TEST(Pickle, BoundsWhatItMakes) {
  EXPECT_TRUE(refused(std::string(kMostPickleValues + 1, 'N'), "more than 1,000,000 values"));
  std::string pushes = "Nq\1(";
  for (std::size_t index = 0; index <= kMostPickleValues; ++index) pushes += "h\1";
  EXPECT_TRUE(refused(pushes, "stacks more than 1,000,000 values"));
  EXPECT_TRUE(refused(std::string(kMostPickleValues + 1, '('), "stacks more than 1,000,000 marks"));
  EXPECT_TRUE(refused(std::string(kLargestPickle, 'N'), "larger than 16 MiB"));
}

TEST(Pickle, ADamagedPickleIsReadOrRefused) {
  const std::string whole =
      kProto + "}(" + pickle_text("w") + pickle_tensor(pickle_storage("FloatStorage", "0", 1), 0, {1}, {1}) + "u.";
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const auto pickle = parse_pickle(damaged);
    if (!pickle) {
      EXPECT_EQ(pickle.error().code, ErrorCode::malformed_input);
    }
  }
}

}  // namespace
}  // namespace gpumem::datasets
