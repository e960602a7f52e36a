// RowStore: the rows of one part of a task's data, tokenised once and kept as `<key>.ymirdata`: a
// header (JSON) and flat arrays, 64-byte aligned, little-endian. Every process of a node maps the
// same file. Immutable; reading is safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ymir/base/mapped_file.h"
#include "ymir/base/result.h"

namespace ymir {

// Where a row came from and what it is, beside its tokens.
struct RowFacts {
  std::uint64_t hash = 0;  // of the normalised text: equal for duplicates
  double score = 0;        // the label as a number; NaN where it is none
  std::int32_t label = 0;  // index into labels()
  std::uint32_t file = 0;  // index into files()
  std::uint32_t line = 0;
  std::uint32_t label_line = 0;
  std::uint32_t label_column = 0;
  std::uint32_t num_cut = 0;  // tokens lost to the length limit
};

// What a store is made of.
struct RowContent {
  std::vector<std::int32_t> ids{};        // all rows behind one another
  std::vector<std::uint8_t> pixels{};     // of images, instead of ids
  std::vector<std::uint64_t> offsets{0};  // rows + 1
  std::vector<std::uint8_t> type_ids{};   // one an id, or none at all
  std::vector<RowFacts> facts{};          // one a row
  std::vector<std::string> labels{};      // the distinct label texts, sorted
  std::vector<std::string> files{};
  std::vector<std::string> notes{};  // for the report
  int max_length = 0;                // the limit that the ids obey
};

class RowStore {
 public:
  // Holds the content in memory.
  static RowStore make(const RowContent& content);
  // Maps `cache`/data/`key`.ymirdata; when it is not there (or broken), calls `build`, writes it
  // and maps that. Other processes wait for the one that builds. An empty `cache` keeps it in
  // memory.
  static Result<RowStore> open_or_build(const std::string& cache, const std::string& key,
                                        const std::function<Result<RowContent>()>& build);

  std::size_t size() const { return facts_.size(); }
  std::size_t length(std::size_t row) const;  // tokens, or bytes of pixels
  // Appends the row's ids (its token types: zeros for single texts).
  void append_ids(std::size_t row, std::vector<std::int32_t>& out) const;
  void append_type_ids(std::size_t row, std::vector<std::int32_t>& out) const;
  // An image's pixels, row by row, channels together; empty where the store holds tokens.
  std::span<const std::uint8_t> pixels(std::size_t row) const;
  const RowFacts& facts(std::size_t row) const { return facts_[row]; }
  const std::vector<std::string>& labels() const { return labels_; }
  const std::vector<std::string>& files() const { return files_; }
  // What the files are called here: the same content may lie elsewhere for another job.
  void name_files(const std::vector<std::string>& files);
  const std::vector<std::string>& notes() const { return notes_; }
  int max_length() const { return max_length_; }
  std::string place(std::size_t row) const;  // "train.csv:17"

 private:
  RowStore() = default;
  Result<> bind(std::span<const std::byte> bytes);

  MappedFile file_;
  std::unique_ptr<std::vector<std::uint64_t>> memory_;  // instead of the file; aligned
  std::span<const std::uint64_t> offsets_;
  std::span<const std::uint16_t> narrow_ids_;  // one of the two is empty, both of images
  std::span<const std::int32_t> wide_ids_;
  std::span<const std::uint8_t> type_ids_, pixels_;
  std::span<const RowFacts> facts_;
  std::vector<std::string> labels_, files_, notes_;
  int max_length_ = 0;
};

}  // namespace ymir
