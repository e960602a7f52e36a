// metrics.jsonl: a line a step and a line an evaluation. A resumed job first drops
// the lines after its checkpoint's step, so that the file reads as one course. One thread.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "ymir/base/result.h"
#include "ymir/core/profile.h"

namespace ymir {

struct StepLine {
  std::int64_t step = 0;
  double epoch = 0;
  std::int64_t samples = 0;
  double loss = 0, lr = 0;
  double seconds = 0;  // of training so far
};

class MetricsFile {
 public:
  // Keeps the lines up to `step`; a line cut off by a crash goes.
  static Result<MetricsFile> open(const std::string& path, std::int64_t step);
  Result<> write(const StepLine& line);
  Result<> write(const Evaluation& evaluation, const std::string& split);
  Result<> flush();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Result<> append(const std::string& line);
  std::string path_{};
  std::unique_ptr<std::FILE, Close> file_{};
};

}  // namespace ymir
