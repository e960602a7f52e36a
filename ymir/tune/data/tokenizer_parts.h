// Reads the "normalizer" and "pre_tokenizer" sections of a tokenizer.json (their JSON text; "null"
// is an empty list). A kind or setting that is not built is refused by name, never skipped. Pure,
// any thread.
#pragma once

#include <string_view>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/tune/data/normalizer.h"
#include "ymir/tune/data/pre_tokenizer.h"

namespace ymir {

Result<std::vector<Normalizer>> parse_normalizers(std::string_view json);
Result<std::vector<PreTokenizer>> parse_pre_tokenizers(std::string_view json);

}  // namespace ymir
