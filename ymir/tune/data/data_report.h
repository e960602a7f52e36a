// DataReport: what a person should know about a task's data before it trains, and every fault in
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ymir/tune/data/data_faults.h"

namespace ymir {

struct DataReport {
  struct Part {
    std::string name{};  // train, validation, test
    std::int64_t num_rows = 0;
    double mean_tokens = 0;                  // after cutting
    std::int64_t longest = 0;                // tokens before cutting
    std::int64_t num_cut = 0;                // rows that lost tokens
    std::int64_t num_dropped = 0;            // rows left out (data.overlong: drop)
    std::int64_t num_duplicates = 0;         // rows whose text an earlier row of the part has
    std::vector<std::int64_t> class_rows{};  // rows of each label, if there are any
    bool has_scores = false;                 // regression
    double min_score = 0, max_score = 0, mean_score = 0;
    std::int64_t num_trained = 0;  // language models: tokens that are labels
  };
  std::vector<Part> parts{};
  std::vector<std::string> labels{};  // empty but for classification
  std::int64_t num_overlapping = 0;   // validation and test rows whose text is trained on
  int max_length = 0;
  FaultList faults{};    // the data can't be used while there is one
  FaultList warnings{};  // worth a look

  bool usable() const { return faults.empty(); }
  std::string text() const;  // for people: the table, then warnings
  std::string json() const;
};

}  // namespace ymir
