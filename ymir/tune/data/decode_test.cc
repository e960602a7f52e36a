// Ids back to text, against what tests/reference/make_decode_reference.py got from transformers.
#include <gtest/gtest.h>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/tune/data/tokenizer.h"

namespace ymir {
namespace {

// The lists of the script: splitmix64.
class Lists {
 public:
  explicit Lists(std::size_t vocabulary) : vocabulary_(vocabulary) {}
  std::vector<std::int32_t> next() {
    std::vector<std::int32_t> ids(below(25));
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(below(vocabulary_));
    return ids;
  }

 private:
  std::size_t below(std::size_t n) {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % n;
  }
  std::size_t vocabulary_;
  std::uint64_t state_ = 5;
};

class Decode : public ::testing::TestWithParam<const char*> {};

TEST_P(Decode, GivesTheTextThatTransformersGives) {
  const std::string folder = YMIR_SOURCE_DIR "/tests/reference/";
  const Json all = Json::parse(*read_file(folder + "decode_values.json"));
  const Json& given = all["cases"][GetParam()];
  const auto tokenizer =
      Tokenizer::parse(*read_file(folder + "bpe/" + GetParam() + ".json"), given["config"].dump());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;

  Lists lists(given["vocabulary"].get<std::size_t>());
  std::string texts;
  for (std::size_t i = 0; i < all["count"].get<std::size_t>(); ++i) {
    const std::string text = tokenizer->decode(lists.next());
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
