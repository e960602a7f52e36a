#include "ymir/tune/data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/temp_folder.h"
#include "ymir/base/text.h"
#include "ymir/tune/data/reference_random.h"

namespace ymir {
namespace {

using ::testing::HasSubstr;

const std::string kReference = YMIR_SOURCE_DIR "/tests/reference/tokenizer";

// The values that tests/reference/make_tokenizer_reference.py got from Hugging Face's library.
const Json& reference() {
  static const Json values =
      *parse_json(*read_file(kReference + "/reference.json"), {.max_bytes = 64u << 20});
  return values;
}

std::string ids_text(const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  return text + "\n";
}

std::vector<std::string> words_of(const char* text) {
  std::vector<std::string> words;
  for (const auto word : split(text, ' ')) words.emplace_back(word);
  return words;
}

std::string generated_line(std::uint64_t number) {
  static const auto words = words_of(
      "the of and to in a is that for it as was with be by on not he his but at are this have from "
      "or had an they which one you were all her she there would their we him been has when who "
      "will no more if out so up said what its about than into them can only other time new some "
      "could these two may first then do any like my now over such our man me even most made after "
      "also did many off before must well back through years where much your way down should "
      "because long each just state people those too mister little good world make very year still "
      "see work life men day between under");
  static const auto pieces =
      words_of("ing ed er est ly ness able tion s es al ic ous ive ment un re dis able ful less");
  static const std::array<const char*, 5> special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  static constexpr std::array<std::array<std::size_t, 2>, 15> ranges = {{{0x20, 0x7F},
                                                                         {0x00, 0x20},
                                                                         {0xA0, 0x250},
                                                                         {0x300, 0x370},
                                                                         {0x370, 0x600},
                                                                         {0x600, 0x1200},
                                                                         {0x2000, 0x2100},
                                                                         {0x3000, 0x3100},
                                                                         {0x4E00, 0x5000},
                                                                         {0x1E00, 0x1F00},
                                                                         {0xAC00, 0xAD00},
                                                                         {0xFF00, 0xFFF0},
                                                                         {0x1F300, 0x1F700},
                                                                         {0x80, 0xD800},
                                                                         {0xE000, 0x110000}}};
  testing::ReferenceRandom random(number);
  std::string line;
  for (std::size_t left = random.below(16); left > 0; --left) {
    const std::size_t kind = random.below(6);
    if (kind <= 1) {
      line += words[random.below(words.size())];
      if (random.below(3) == 0) line += pieces[random.below(pieces.size())];
    } else if (kind == 2) {
      std::string word = words[random.below(words.size())];
      for (char& c : word) c = static_cast<char>(c - 'a' + 'A');
      line += word;
    } else if (kind == 3) {
      const auto [low, high] = ranges[random.below(ranges.size())];
      for (std::size_t more = 1 + random.below(6); more > 0; --more)
        append_utf8(line, static_cast<char32_t>(low + random.below(high - low)));
    } else if (kind == 4) {
      line += special[random.below(special.size())];
    } else {
      const char letter = static_cast<char>('a' + random.below(26));
      line.append(1 + random.below(120), letter);
    }
    if (random.below(3) != 0) line += ' ';
  }
  return line;
}

// Checks a tokenizer against everything the reference holds for it.
void expect_reference(const Tokenizer& tokenizer, const Json& values) {
  for (const Json& line : values["lines"])
    EXPECT_EQ(tokenizer.encode(line[0].get<std::string>()).ids,
              line[1].get<std::vector<std::int32_t>>())
        << line[0];
  for (const Json& cut : values["truncated"])
    EXPECT_EQ(tokenizer.encode(cut[0].get<std::string>(), cut[1]).ids,
              cut[2].get<std::vector<std::int32_t>>())
        << cut[0] << " cut to " << cut[1];
  for (const Json& pair : values["pairs"]) {
    const auto encoding =
        tokenizer.encode_pair(pair[0].get<std::string>(), pair[1].get<std::string>(), pair[2]);
    EXPECT_EQ(encoding.ids, pair[3].get<std::vector<std::int32_t>>()) << pair;
    EXPECT_EQ(encoding.type_ids, pair[4].get<std::vector<std::int32_t>>()) << pair;
  }
}

// The generated lines, 10,000 a hash: the first `num_blocks` of the reference's ten.
void expect_generated(const Tokenizer& tokenizer, const Json& hashes, std::uint64_t num_blocks) {
  ASSERT_EQ(hashes.size(), 10u);
  for (std::uint64_t block = 0; block < num_blocks; ++block) {
    Sha256 hash;
    for (std::uint64_t i = 0; i < 10'000; ++i)
      hash.update(ids_text(tokenizer.encode(generated_line(block * 10'000 + i)).ids));
    EXPECT_EQ(hash.hex(), hashes[block].get<std::string>()) << "lines from " << block * 10'000;
  }
}

class SmallTokenizers : public ::testing::TestWithParam<const char*> {};

TEST_P(SmallTokenizers, EqualTheReferenceOnWrittenLinesPairsAndCuts) {
  const auto tokenizer = Tokenizer::load(kReference + "/" + GetParam());

  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  expect_reference(*tokenizer, reference()["tokenizers"][GetParam()]);
}

TEST_P(SmallTokenizers, EqualTheReferenceOnGeneratedLines) {
  const auto tokenizer = Tokenizer::load(kReference + "/" + GetParam());

  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const std::uint64_t num_blocks = std::string(GetParam()) == "uncased" ? 10 : 2;
  expect_generated(*tokenizer, reference()["tokenizers"][GetParam()]["generated"], num_blocks);
}

INSTANTIATE_TEST_SUITE_P(All, SmallTokenizers, ::testing::Values("uncased", "cased", "added"));

TEST(BertText, EveryCodePointIsNormalisedAndSplitAsInTheReference) {
  for (const bool lower : {true, false}) {
    const BertNormalizer normalizer{.lowercase = lower};
    const Json& hashes = reference()["code_points"][lower ? "uncased" : "cased"];
    for (char32_t plane = 0; plane < 17; ++plane) {
      Sha256 hash;
      for (char32_t c = plane << 16; c < (plane + 1) << 16; ++c) {
        if (c >= 0xD800 && c < 0xE000) continue;
        std::string text = "A";
        append_utf8(text, c);
        AlignedText aligned(text + "b", false);
        normalizer.normalize(aligned);
        const std::string& normal = aligned.text();
        std::string words;
        for (const auto word : split_bert_words(normal))
          (words += words.empty() ? "" : " ") += word;
        hash.update(words + "\n");
      }
      EXPECT_EQ(hash.hex(), hashes[plane].get<std::string>()) << "plane " << int(plane);
    }
  }
}

// The real MiniLM, where scripts/test or `ymir fetch minilm --out ~/.cache/ymir/minilm` put it.
class MiniLmTokenizer : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = YMIR_SOURCE_DIR "/build/demo-data/model";
    if (!std::filesystem::exists(folder + "/tokenizer.json")) folder = cache_folder() + "/minilm";
    if (!std::filesystem::exists(folder + "/tokenizer.json"))
      GTEST_SKIP() << "no MiniLM: ymir fetch minilm --out " << folder;
    auto loaded = Tokenizer::load(folder);
    ASSERT_TRUE(loaded) << loaded.error().message;
    tokenizer = *std::move(loaded);
    ASSERT_EQ(*sha256_file(folder + "/tokenizer.json"), values["tokenizer_sha256"]);
  }
  const Json& values = reference()["tokenizers"]["minilm"];
  Tokenizer tokenizer;
};

TEST_F(MiniLmTokenizer, EqualsTheReferenceOnWrittenAndGeneratedLines) {
  expect_reference(tokenizer, values);
  expect_generated(tokenizer, values["generated"], 10);
}

TEST_F(MiniLmTokenizer, EqualsTheReferenceOnEveryLineOfTheCorpora) {
  const char* variable = std::getenv("YMIR_SHARED");
  const std::string root =
      (variable != nullptr ? variable : YMIR_SOURCE_DIR "/../shared") + std::string("/data/text/");
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no corpora in " << root;

  for (const auto& [name, expected] : values["corpora"].items()) {
    std::string text = *read_file(root + name);
    if (!valid_utf8(text)) {
      std::string wide;
      for (const char c : text) append_utf8(wide, static_cast<unsigned char>(c));
      text = wide;
    }
    Sha256 whole, cut;
    const auto lines = split(text, '\n');
    for (const auto line : lines) {
      whole.update(ids_text(tokenizer.encode(line).ids));
      cut.update(ids_text(tokenizer.encode(line, 32).ids));
    }

    EXPECT_EQ(lines.size(), expected["lines"].get<std::size_t>()) << name;
    EXPECT_EQ(whole.hex(), expected["whole"].get<std::string>()) << name;
    EXPECT_EQ(cut.hex(), expected["cut_to_32"].get<std::string>()) << name;
  }
}

TEST(Tokenizer, VocabTxtAloneGivesTheSameIdsAsTheTokenizerFile) {
  const auto file = Tokenizer::load(kReference + "/uncased");
  const Json json = *parse_json(*read_file(kReference + "/uncased/tokenizer.json"));
  std::vector<std::string> tokens(json["model"]["vocab"].size());
  for (const auto& [token, id] : json["model"]["vocab"].items()) tokens.at(id) = token;

  const auto text = Tokenizer::parse_vocabulary(join(tokens, "\n"), "");

  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(text->vocabulary_size(), file->vocabulary_size());
  for (std::uint64_t i = 0; i < 300; ++i)
    EXPECT_EQ(text->encode(generated_line(i)).ids, file->encode(generated_line(i)).ids);
}

TEST(Tokenizer, WhatIsCutIsCounted) {
  const auto tokenizer = Tokenizer::load(kReference + "/uncased");

  EXPECT_EQ(tokenizer->encode("the of and to in", 4).num_cut, 3);
  EXPECT_EQ(tokenizer->encode_pair("the of and", "to in", 5).num_cut, 3);
  EXPECT_EQ(tokenizer->encode("the", 0).num_cut, 0);
}

TEST(Tokenizer, AComponentThatIsNotBuiltIsRefusedByName) {
  const Json good = *parse_json(*read_file(kReference + "/uncased/tokenizer.json"));
  const auto fault = [&good](const char* section, const Json& value) {
    Json changed = good;
    changed[section] = value;
    const auto result = Tokenizer::parse(changed.dump(), "");
    return result ? "none" : result.error().message;
  };
  const auto split = [](const char* regex) {
    return Json{{"type", "Split"},
                {"pattern", {{"Regex", regex}}},
                {"behavior", "Isolated"},
                {"invert", false}};
  };

  EXPECT_THAT(fault("model", {{"type", "Unigram"}}), HasSubstr("tokenizer.json: model Unigram"));
  EXPECT_THAT(fault("model", nullptr), HasSubstr("model null"));
  EXPECT_THAT(fault("normalizer", {{"type", "Precompiled"}}), HasSubstr("normalizer Precompiled"));
  EXPECT_THAT(fault("normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Odd"}}}}}),
              HasSubstr("normalizer Odd"));
  EXPECT_THAT(fault("pre_tokenizer", {{"type", "UnicodeScripts"}}),
              HasSubstr("pre_tokenizer UnicodeScripts"));
  EXPECT_THAT(fault("pre_tokenizer", split("(a+)+")), HasSubstr("a repetition within a repeated"));
  EXPECT_THAT(fault("pre_tokenizer", split("(a)\\1")), HasSubstr("\\1 is not supported"));
  EXPECT_THAT(fault("pre_tokenizer", split("\\p{Greek}")), HasSubstr("the property Greek"));
  EXPECT_THAT(fault("pre_tokenizer", split("(?m)a")), HasSubstr("a kind of group"));
  EXPECT_THAT(fault("post_processor", {{"type", "Other"}}), HasSubstr("post_processor Other"));
}

TEST(Tokenizer, AnUnknownTokenThatIsMissingIsTold) {
  Json json = *parse_json(*read_file(kReference + "/uncased/tokenizer.json"));
  json["model"]["vocab"].erase("[UNK]");

  const auto result = Tokenizer::parse(json.dump(), "");

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("\"[UNK]\" is not in the vocabulary"));
}

TEST(Tokenizer, AFolderWithoutTokenizerIsTold) {
  const auto result = Tokenizer::load("/nonexistent");

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "/nonexistent: no tokenizer.json and no vocab.txt");
}

TEST(Tokenizer, AFolderWithATokenizerOfAnotherFormIsToldWhatToDo) {
  const TempFolder folder("form");
  ASSERT_TRUE(write_file(folder / "tokenizer.model", "x"));

  const auto result = Tokenizer::load(folder.path());

  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("tokenizer.model alone is not read, make a "));
  EXPECT_THAT(result.error().message, HasSubstr("save_pretrained"));
}

TEST(TokenizeLines, GivesAJsonArrayALineAndTellsOfBadUtf8) {
  const auto tokenizer = Tokenizer::load(kReference + "/uncased");
  std::string out, bad;
  std::vector<std::int64_t> broken;

  ASSERT_TRUE(tokenize_lines(*tokenizer, "the\n\nthe [SEP]", 3, false, out, broken));
  EXPECT_TRUE(broken.empty());
  ASSERT_TRUE(tokenize_lines(*tokenizer, "the\nthe\xff\n", 0, false, bad, broken));
  const auto narrow = tokenize_lines(*tokenizer, "the\n", 1, false, bad, broken);

  const auto the = std::to_string(tokenizer->encode("the").ids.at(1));
  EXPECT_EQ(out, "[2," + the + ",3]\n[2,3]\n[2," + the + ",3]\n");
  EXPECT_EQ(bad, "[2," + the + ",3]\n[2," + the + ",3]\n");  // BERT drops U+FFFD
  EXPECT_EQ(broken, std::vector<std::int64_t>{2});
  EXPECT_THAT(narrow.error().message, HasSubstr("no room"));
}

TEST(TokenizeLines, WithDetailsGivesTokensAndTheirPlaces) {
  const auto tokenizer = Tokenizer::load(kReference + "/uncased");
  std::string out;
  std::vector<std::int64_t> broken;

  ASSERT_TRUE(tokenize_lines(*tokenizer, "\u00c9t\u00e9 the", 0, true, out, broken));

  const Json line = *parse_json(out.substr(0, out.size() - 1));
  EXPECT_EQ(line["tokens"].front(), "[CLS]");
  EXPECT_EQ(line["tokens"].back(), "[SEP]");
  EXPECT_EQ(line["tokens"][line["tokens"].size() - 2], "the");
  EXPECT_EQ(line["offsets"][line["tokens"].size() - 2], Json({4, 7}));
}

}  // namespace
}  // namespace ymir
