// Ids back to text, against what tests/reference/make_decode_reference.py got from transformers.
#include <gtest/gtest.h>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/tune/data/reference_random.h"
#include "ymir/tune/data/tokenizer.h"

namespace ymir {
namespace {

std::vector<std::int32_t> random_ids(testing::ReferenceRandom& random, std::size_t vocabulary) {
  std::vector<std::int32_t> ids(random.below(25));
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random.below(vocabulary));
  return ids;
}

class Decode : public ::testing::TestWithParam<const char*> {};

TEST_P(Decode, GivesTheTextThatTransformersGives) {
  const std::string folder = YMIR_SOURCE_DIR "/tests/reference/";
  const Json all = Json::parse(*read_file(folder + "decode_values.json"));
  const Json& given = all["cases"][GetParam()];
  const auto tokenizer =
      Tokenizer::parse(*read_file(folder + "bpe/" + GetParam() + ".json"), given["config"].dump());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;

  testing::ReferenceRandom random(5);
  std::string texts;
  for (std::size_t i = 0; i < all["count"].get<std::size_t>(); ++i) {
    const std::string text =
        tokenizer->decode(random_ids(random, given["vocabulary"].get<std::size_t>()));
    if (i < given["first"].size()) {
      EXPECT_EQ(text, given["first"][i].get<std::string>()) << i;
    }
    texts += text + "\n";
  }

  EXPECT_EQ(sha256(texts), given["sha256"].get<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Decode,
                         ::testing::Values("gpt2", "roberta", "llama3", "llama2"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace ymir
