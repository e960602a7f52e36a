// PartLoader: the files of one part of a task's data (training, validation, test) as a store of
// tokenised rows or resized images, built once and kept (row_store.h). One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ymir/tune/data/dataset.h"
#include "ymir/tune/data/reader.h"

namespace ymir {

ReadOptions read_options(const DataRequest& request);

class PartLoader {
 public:
  // `max_length` 0: chosen from the rows. `tokenizer` null: of images, which have none.
  PartLoader(const DataRequest& request, const std::vector<std::string>& files, int max_length,
             const Tokenizer* tokenizer, DataReport& report)
      : request_(request),
        files_(files),
        max_length_(max_length),
        tokenizer_(tokenizer),
        report_(report) {}

  // Faults of rows go to the report; fails when a file can't be read at all.
  Result<std::shared_ptr<const RowStore>> load();
  // Identifies content and settings: equal key = equal rows.
  const std::string& key() const { return key_; }

 private:
  struct Prompt;  // a row of a language model's file

  Result<std::string> find_key() const;
  Result<RowContent> build();
  Result<RowContent> build_text();
  Result<RowContent> build_language();
  Result<RowContent> build_images();
  Result<std::vector<Prompt>> read_prompts(const std::string& file, RowContent& content);
  bool full(std::size_t rows) const;  // data.limit is reached
  std::vector<std::string> names_of(const RowStore& rows) const;
  Encoding encode(const TextRow& row, int limit) const;
  void tokenise(const std::vector<TextRow>& rows, RowContent& content) const;
  void number_labels(const std::vector<std::string>& labels, RowContent& content) const;

  const DataRequest& request_;
  const std::vector<std::string>& files_;
  int max_length_;
  const Tokenizer* tokenizer_;
  DataReport& report_;
  FaultList faults_{};
  std::string key_{};
  bool has_pair_ = false;
};

}  // namespace ymir
