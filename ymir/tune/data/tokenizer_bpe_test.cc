// BPE tokenizers against what tests/reference/make_bpe_reference.py got from Hugging Face's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/reference_random.h"
#include "ymir/tune/data/tokenizer.h"
#include "ymir/tune/data/unicode.h"

namespace ymir {
namespace {

const std::string kFolder = YMIR_SOURCE_DIR "/tests/reference/bpe/";

const Json& reference() {
  static const Json values =
      *parse_json(*read_file(kFolder + "reference.json"), {.max_bytes = 64u << 20});
  return values;
}

class Random : public testing::ReferenceRandom {
 public:
  using testing::ReferenceRandom::ReferenceRandom;
  const std::string& of(const std::vector<std::string>& values) {
    return values[below(values.size())];
  }
};

struct Pieces {
  std::vector<std::string> words, blanks, endings, emoji, marks, special, broken;
  std::vector<std::vector<std::size_t>> ranges;
};

const Pieces& pieces() {
  static const Pieces made = [] {
    const Json& lists = reference()["pieces"];
    Pieces p{lists["words"], lists["blanks"],  lists["endings"], lists["emoji"],
             lists["marks"], lists["special"], lists["broken"],  lists["ranges"]};
    for (std::string& piece : p.broken) {
      std::string bytes;
      for (std::size_t i = 0; i < piece.size(); i += 2)
        bytes += static_cast<char>(std::stoi(piece.substr(i, 2), nullptr, 16));
      piece = bytes;
    }
    return p;
  }();
  return made;
}

std::string upper_ascii(std::string word) {
  if (!is_ascii(word)) return word;
  for (char& c : word)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return word;
}

std::string one_piece(Random& r) {
  const Pieces& p = pieces();
  const std::size_t kind = r.below(14);
  if (kind <= 3) return r.of(p.words);
  if (kind == 4) return upper_ascii(r.of(p.words));
  if (kind == 5) {
    const auto& range = p.ranges[r.below(p.ranges.size())];
    std::string text;
    for (std::size_t more = 1 + r.below(5); more > 0; --more) {
      const auto c = static_cast<char32_t>(range[0] + r.below(range[1] - range[0]));
      append_utf8(text, c >= 0xD800 && c < 0xE000 ? U'?' : c);
    }
    return text;
  }
  if (kind == 6) return r.of(p.special);
  if (kind == 7) {
    const char letter = static_cast<char>('a' + r.below(26));
    return std::string(1 + r.below(60), letter);
  }
  if (kind == 8) return r.of(p.blanks);
  if (kind == 9) {
    std::size_t limit = 1;
    for (std::size_t digits = 1 + r.below(7); digits > 0; --digits) limit *= 10;
    return std::to_string(r.below(limit));
  }
  if (kind == 10) return r.of(p.endings);
  if (kind == 11) return r.of(p.emoji);
  return r.of(kind == 12 ? p.marks : p.broken);
}

std::string generated_text(std::uint64_t number) {
  Random r(number * 7919 + 17);
  std::string text;
  for (std::size_t left = number % 250 == 249 ? 400 : r.below(14); left > 0; --left) {
    text += one_piece(r);
    if (r.below(2) != 0) text += ' ';
  }
  return text;
}

std::string ids_text(const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

std::string line_of(const Tokenizer& tokenizer, const std::string& text) {
  const Encoding encoding = tokenizer.encode_with_offsets(text);
  std::string line = ids_text(encoding.ids) + "|";
  for (std::size_t i = 0; i < encoding.offsets.size(); ++i)
    line += (i > 0 ? "," : "") + std::to_string(encoding.offsets[i].begin) + "-" +
            std::to_string(encoding.offsets[i].end);
  return line;
}

std::string file_of(const std::string& name) { return *read_file(kFolder + name + ".json"); }

class BpeTokenizers : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto parsed = Tokenizer::parse(file_of(GetParam()), "");
    ASSERT_TRUE(parsed) << parsed.error().message;
    tokenizer = *std::move(parsed);
  }
  Tokenizer tokenizer;
  const Json& values = reference()["tokenizers"][GetParam()];
};

TEST_P(BpeTokenizers, GiveTheReferencesIdsAndOffsetsForEachText) {
  for (std::size_t i = 0; i < values["first"].size(); ++i)
    EXPECT_EQ(line_of(tokenizer, generated_text(i)), values["first"][i].get<std::string>())
        << ::testing::PrintToString(generated_text(i));
  const auto hashes = values["texts"].get<std::string>();
  ASSERT_EQ(hashes.size(), reference()["num_texts"].get<std::size_t>() * 6);
  int wrong = 0;
  for (std::size_t i = 0; i < hashes.size() / 6 && wrong < 10; ++i) {
    const std::string line = line_of(tokenizer, generated_text(i));
    const bool same = sha256(line + "\n").substr(0, 6) == hashes.substr(i * 6, 6);
    EXPECT_TRUE(same) << "text " << i << ": " << ::testing::PrintToString(generated_text(i))
                      << " gives " << line;
    wrong += same ? 0 : 1;
  }
}

TEST_P(BpeTokenizers, GiveTheReferencesIdsAndOffsetsForTenThousandMore) {
  const auto block_size = reference()["block"].get<std::uint64_t>();
  for (std::size_t block = 0; block < values["blocks"].size(); ++block) {
    Sha256 hash;
    for (std::uint64_t i = 0; i < block_size; ++i)
      hash.update(line_of(tokenizer, generated_text(100'000 + block * block_size + i)) + "\n");
    EXPECT_EQ(hash.hex(), values["blocks"][block].get<std::string>()) << "block " << block;
  }
}

TEST_P(BpeTokenizers, JoinPairsAsTheReference) {
  Sha256 hash;
  for (std::uint64_t i = 0; i < 200; i += 2) {
    const auto both = tokenizer.encode_pair(generated_text(i), generated_text(i + 1));
    hash.update(ids_text(both.ids) + "|" + ids_text(both.type_ids) + "\n");
  }
  EXPECT_EQ(hash.hex(), values["pairs"].get<std::string>());
}

TEST_P(BpeTokenizers, GiveTheSameIdsWithAndWithoutOffsets) {
  for (std::uint64_t i = 0; i < 500; ++i)
    EXPECT_EQ(tokenizer.encode(generated_text(i)).ids,
              tokenizer.encode_with_offsets(generated_text(i)).ids)
        << i;
}

// AutoTokenizer builds part of the pipeline from the class that tokenizer_config.json names.
TEST_P(BpeTokenizers, FollowTheClassOfTheConfiguration) {
  for (const Json& entry : reference()["classes"][GetParam()]) {
    const auto parsed = Tokenizer::parse(file_of(GetParam()), entry[0].dump());
    ASSERT_TRUE(parsed) << entry[0] << parsed.error().message;
    Sha256 hash;
    for (std::uint64_t i = 0; i < reference()["num_texts"].get<std::uint64_t>(); ++i)
      hash.update(ids_text(parsed->encode(generated_text(i), i % 2 != 0 ? 12 : 0).ids) + "\n");
    EXPECT_EQ(hash.hex(), entry[1].get<std::string>()) << entry[0];
  }
}

INSTANTIATE_TEST_SUITE_P(All, BpeTokenizers,
                         ::testing::Values("gpt2", "roberta", "llama3", "cased", "llama2",
                                           "metaspace", "folded", "prefixed"));

// Calls `use` with runs of 4,096 code points of the planes that hold characters.
void for_all_runs(const std::function<void(const std::vector<char32_t>&)>& use) {
  std::vector<char32_t> starts;
  for (char32_t start = 0; start < 0x40000; start += 4096) starts.push_back(start);
  starts.insert(starts.end(), {0xE0000, 0xF0000, 0x10F000});
  for (const char32_t start : starts) {
    std::vector<char32_t> run;
    for (char32_t c = start; c < start + 4096; ++c)
      if (c < 0xD800 || c >= 0xE000) run.push_back(c);
    use(run);
  }
}

TEST(TextPattern, ClassesOfCharactersHoldWhatTheReferencesHold) {
  for (const auto& [expression, expected] : reference()["sets"].items()) {
    const auto pattern = TextPattern::expression(expression + "+");
    ASSERT_TRUE(pattern) << pattern.error().message;
    Sha256 hash;
    for_all_runs([&](const std::vector<char32_t>& run) {
      std::string text;
      for (const char32_t c : run) append_utf8(text, c);
      AlignedText rest(text, false);
      rest.replace(pattern->find(text), "");
      hash.update(rest.text());
    });
    EXPECT_EQ(hash.hex(), expected.get<std::string>()) << expression;
  }
}

TEST(Normalizers, EveryCodePointBecomesWhatItBecomesInTheReference) {
  for (const auto& [name, expected] : reference()["normal_forms"].items()) {
    const Normalizer how = name == "NFC"         ? Normalizer(NormalForm::kNfc)
                           : name == "NFD"       ? Normalizer(NormalForm::kNfd)
                           : name == "NFKC"      ? Normalizer(NormalForm::kNfkc)
                           : name == "NFKD"      ? Normalizer(NormalForm::kNfkd)
                           : name == "Lowercase" ? Normalizer(LowerCase{})
                                                 : Normalizer(StripAccents{});
    Sha256 hash;
    for_all_runs([&](const std::vector<char32_t>& run) {
      std::string text;
      for (const char32_t c : run) {
        text += 'a';
        append_utf8(text, c);
        text += "\u0323\u0301";
        append_utf8(text, c);
        text += '\n';
      }
      AlignedText aligned(text, false);
      normalize(aligned, how);
      hash.update(aligned.text());
    });
    EXPECT_EQ(hash.hex(), expected.get<std::string>()) << name;
  }
}

TEST(TextPattern, RefusesWhatItWouldNotReadAsTheReference) {
  const auto fault = [](const char* expression) {
    const auto pattern = TextPattern::expression(expression);
    return pattern ? "none" : pattern.error().message;
  };

  EXPECT_THAT(fault("(\\s+|a)*"), ::testing::HasSubstr("a repetition within a repeated group"));
  EXPECT_THAT(fault("a{1,3}+"), ::testing::HasSubstr("+ after a count"));
  EXPECT_THAT(fault("[[:alpha:]]"), ::testing::HasSubstr("a named class"));
  EXPECT_THAT(fault("(?m:a.b)"), ::testing::HasSubstr("a kind of group"));
  EXPECT_THAT(fault("\\bword"), ::testing::HasSubstr("\\b is not supported"));
  EXPECT_THAT(fault("(a"), ::testing::HasSubstr("a group is not closed"));
  EXPECT_THAT(fault("a)"), ::testing::HasSubstr("closes that was not opened"));
  EXPECT_THAT(fault("+a"), ::testing::HasSubstr("a repetition of nothing"));
  EXPECT_THAT(fault("[a"), ::testing::HasSubstr("a class is not closed"));
}

TEST(TextPattern, CutsAsItsBehaviourSays) {
  const auto parts = [](CutBehavior behavior) {
    const std::string text = "a--b-";
    std::string joined;
    for (const Segment& s : cut(TextPattern::literal("-").find(text), behavior))
      joined += text.substr(s.begin, s.end - s.begin) + "|";
    return joined;
  };

  EXPECT_EQ(parts(CutBehavior::kRemoved), "a|b|");
  EXPECT_EQ(parts(CutBehavior::kIsolated), "a|-|-|b|-|");
  EXPECT_EQ(parts(CutBehavior::kMergedWithPrevious), "a-|-|b-|");
  EXPECT_EQ(parts(CutBehavior::kMergedWithNext), "a|-|-b|-|");
  EXPECT_EQ(parts(CutBehavior::kContiguous), "a|--|b|-|");
}

TEST(Bpe, AMergeOfNoEntryIsNamed) {
  const auto model = Bpe::make({{"a", 0}, {"b", 1}}, {{"a", "b"}}, {});

  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message,
              ::testing::HasSubstr("\"ab\", which is not in the vocabulary"));
}

TEST(Bpe, AVeryLongWordTakesAboutLinearTime) {
  Json file = *parse_json(file_of("llama2"), {.max_bytes = 64u << 20});
  const auto tokenizer = Tokenizer::parse(file.dump(), "");
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "the man of ";

  const auto ids = tokenizer->encode(text).ids;

  EXPECT_GT(ids.size(), 10'000u);
  EXPECT_LT(ids.size(), 110'000u);
}

}  // namespace
}  // namespace ymir
