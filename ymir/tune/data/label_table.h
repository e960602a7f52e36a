// LabelTable: what the labels of a classification task are called, and which class a label text of
// a data file means. Immutable; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

class LabelTable {
 public:
  LabelTable() = default;  // of no labels
  // `declared`: the job's own list (its order counts), or empty: then the classes are the texts
  // that the training rows hold, sorted, as numbers when all are whole numbers. `mode`
  // (data.label): auto, name, int. A whole number means the declared label of that name, else the
  // label at that place from 0. Refuses fewer than two declared labels, repeated ones and an
  // unknown mode.
  static Result<LabelTable> make(const std::vector<std::string>& declared, const std::string& mode,
                                 const std::vector<std::string>& training_texts);

  std::optional<std::int32_t> class_of(std::string_view text) const;
  const std::vector<std::string>& names() const { return names_; }
  // `label "postive" is not one of 2 known labels (nearest: "positive")`
  std::string unknown(std::string_view text) const;

 private:
  explicit LabelTable(std::vector<std::string> names);
  void read_as_numbers();  // all names are whole numbers

  std::vector<std::string> names_;
  std::map<std::string, std::int32_t, std::less<>> places_;  // of each name
  std::map<std::int64_t, std::int32_t> places_of_numbers_;   // when by_number_
  bool by_place_ = false;                                    // whole numbers are places in names_
  bool by_number_ = false;  // names_ are whole numbers: "07" is "7"
};

}  // namespace ymir
