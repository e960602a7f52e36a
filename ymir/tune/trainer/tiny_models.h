// For tests: tiny folders of every family with random weights, and data that each can learn: text
// with classes, conversations, images. Torch-free.
#pragma once

#include <filesystem>

#include "ymir/tune/checkpoint/half.h"
#include "ymir/tune/model/backbone_image.h"
#include "ymir/tune/trainer/tiny_job.h"

namespace ymir::testing {

// Writes random weights for a config.json into the folder; `dtype` as the file's tensors are
// stored.
inline void write_random_weights(const std::string& folder, const std::string& config_text,
                                 DType dtype = DType::kF32) {
  const auto config = parse_model_config(config_text);
  ASSERT_TRUE(config) << config.error().message;
  const Family& family = family_of(config->family);
  const ImageParts parts{family.head == HeadKind::kPooler, config->causal && !config->tied_output};
  Rng rng(17);
  std::map<std::string, std::vector<float>> values;
  std::map<std::string, std::vector<std::uint16_t>> halves;
  TensorMap map;
  for (const ImageEntry& entry : image_layout(*config, parts))
    for (std::size_t i = 0; i < entry.sources.size(); ++i) {
      Shape shape = entry.shape;
      if (!entry.heights.empty()) shape[0] = entry.heights[i];
      std::int64_t count = 1;
      for (const std::int64_t size : shape) count *= size;
      const bool gain = entry.name.ends_with(".gain"), bias = entry.name.ends_with(".bias");
      const double deviation = entry.name == "words" ? 1 : gain || bias ? 0.02 : 0.1;
      const bool outside = entry.name.starts_with("output.");
      const std::string name = (outside ? "" : std::string(family.prefix)) + entry.sources[i];
      std::vector<float>& tensor = values[name];
      for (std::int64_t k = 0; k < count; ++k)
        tensor.push_back(static_cast<float>((gain ? 1 : 0) + deviation * rng.normal()));
      map[name] = view_of(tensor, shape);
      if (dtype == DType::kF32) continue;
      for (const float value : tensor)
        halves[name].push_back(dtype == DType::kF16 ? f16_bits(value) : bf16_bits(value));
      map[name] = {dtype, shape, std::as_bytes(std::span(halves[name]))};
    }
  ASSERT_TRUE(make_folders(folder));
  ASSERT_TRUE(write_file(folder + "/config.json", config_text));
  ASSERT_TRUE(write_safetensors(folder + "/model.safetensors", map));
}

inline void copy_tokenizer(const std::string& name, const std::string& folder,
                           const std::string& config) {
  const auto text = read_file(YMIR_SOURCE_DIR "/tests/reference/bpe/" + name + ".json");
  ASSERT_TRUE(text) << text.error().message;
  ASSERT_TRUE(write_file(folder + "/tokenizer.json", *text));
  ASSERT_TRUE(write_file(folder + "/tokenizer_config.json", config));
}

// A model folder of the family: bert roberta distilbert llama vit.
inline void write_tiny_family(const std::string& family, const std::string& folder,
                              DType dtype = DType::kF32) {
  const std::string sizes =
      R"("hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":96,)";
  if (family == "bert") return write_tiny_model(folder);
  if (family == "roberta") {
    write_random_weights(folder,
                         R"({"model_type":"roberta",)" + sizes +
                             R"("vocab_size":700,"max_position_embeddings":66,"pad_token_id":1,)"
                             R"("type_vocab_size":1,"hidden_dropout_prob":0.1})",
                         dtype);
    return copy_tokenizer("roberta", folder, R"({"tokenizer_class":"RobertaTokenizer"})");
  }
  if (family == "distilbert") {
    write_random_weights(folder,
                         R"({"model_type":"distilbert","dim":64,"n_layers":2,"n_heads":4,)"
                         R"("hidden_dim":96,"vocab_size":45,"max_position_embeddings":64})",
                         dtype);
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (int word = 0; word < kWords; ++word) vocabulary += "w" + std::to_string(word) + "\n";
    ASSERT_TRUE(write_file(folder + "/vocab.txt", vocabulary));
    return;
  }
  if (family == "vit")
    return write_random_weights(
        folder,
        R"({"model_type":"vit",)" + sizes + R"("image_size":16,"patch_size":4,"num_channels":3})",
        dtype);
  write_random_weights(folder,
                       R"({"model_type":"llama",)" + sizes +
                           R"("num_key_value_heads":2,"vocab_size":1155,)"
                           R"("max_position_embeddings":128,"attention_bias":true})",
                       dtype);
  copy_tokenizer("llama2", folder,
                 R"({"tokenizer_class":"LlamaTokenizer","eos_token":"</s>","bos_token":"<s>"})");
}

// Pictures of 10 x 10 grey pixels as a table, a bright half on the left or on the right.
inline void write_tiny_images(const std::string& path, int rows, std::uint64_t seed) {
  Rng rng(seed);
  std::string text;
  for (int row = 0; row < rows; ++row) {
    const bool right = rng.below(2) == 1;
    for (int y = 0; y < 10; ++y)
      for (int x = 0; x < 10; ++x)
        text += std::to_string((x >= 5) == right ? 120 + rng.below(130) : rng.below(130)) + ",";
    text += right ? "right\n" : "left\n";
  }
  ASSERT_TRUE(write_file(path, text));
}

// Rows of common words, which every tokenizer knows whole; one of two says the class.
inline void write_word_rows(const std::string& path, int rows, std::uint64_t seed) {
  static const std::vector<std::string> kFill = {"the", "of", "and", "to", "in", "that", "for"};
  Rng rng(seed);
  std::string text = "text,label\n";
  for (int row = 0; row < rows; ++row) {
    const bool yes = rng.below(2) == 1;
    const auto length = rng.between(3, 9), place = rng.between(0, length - 1);
    for (std::int64_t i = 0; i < length; ++i)
      text += (i == 0 ? "" : " ") +
              (i == place ? std::string(yes ? "people" : "time") : kFill[rng.below(kFill.size())]);
    text += yes ? ",yes\n" : ",no\n";
  }
  ASSERT_TRUE(write_file(path, text));
}

// Alpaca rows whose answer is a function of the instruction: which of a few words it names.
inline void write_tiny_conversations(const std::string& path, int rows, std::uint64_t seed) {
  static const std::vector<std::pair<std::string, std::string>> kFacts = {
      {"the man", "time"}, {"the day", "night"}, {"my people", "all of us"}, {"some water", "new"}};
  Rng rng(seed);
  std::string text;
  for (int row = 0; row < rows; ++row) {
    const auto& [asked, answer] = kFacts[rng.below(kFacts.size())];
    text += fmt::format(R"({{"instruction":"what of {} {}","input":"","output":"{}"}})", asked,
                        rng.below(1000), answer) +
            "\n";
  }
  ASSERT_TRUE(write_file(path, text));
}

// A job that the family learns: classes of text or images, or (`language`) answers.
inline JobSpec family_spec(const Workspace& at, const std::string& family, bool language = false) {
  const std::string model = at.path("model-" + family);
  if (!std::filesystem::exists(model)) write_tiny_family(family, model);
  JobSpec spec = tiny_spec(at);
  spec.model = model;
  spec.train.lr = 3e-3;
  const auto use = [&](const std::string& train, const std::string& validation) {
    spec.data.train = {at.path(train)};
    spec.data.validation = {at.path(validation)};
  };
  if (family == "vit") {
    spec.data.format = "pixels";
    use("images.csv", "images-validation.csv");
    if (!std::filesystem::exists(spec.data.train[0])) {
      write_tiny_images(spec.data.train[0], 150, 3);
      write_tiny_images(spec.data.validation[0], 60, 4);
    }
  }
  if (!language && (family == "roberta" || family == "llama")) {
    use("words.csv", "words-validation.csv");
    if (!std::filesystem::exists(spec.data.train[0])) {
      write_word_rows(spec.data.train[0], 150, 3);
      write_word_rows(spec.data.validation[0], 60, 4);
    }
  }
  if (language) {
    spec.kind = TaskKind::kLanguageModel;
    spec.data.format = "alpaca";
    use("talk.jsonl", "talk-validation.jsonl");
    if (!std::filesystem::exists(spec.data.train[0])) {
      write_tiny_conversations(spec.data.train[0], 150, 3);
      write_tiny_conversations(spec.data.validation[0], 24, 4);
    }
    spec.metrics = {"loss"};
    spec.method.targets = {"v_proj", "o_proj", "up_proj", "down_proj"};
    spec.train.lr = 2e-2;
  }
  return spec;
}

}  // namespace ymir::testing
