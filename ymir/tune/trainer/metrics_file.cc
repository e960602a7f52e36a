#include "ymir/tune/trainer/metrics_file.h"

#include <cerrno>
#include <cstring>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

std::string kept_lines(const std::string& text, std::int64_t step) {
  std::string kept;
  for (const std::string_view line : split(text, '\n')) {
    const auto json = parse_json(line);
    if (!json || !json->is_object()) continue;
    const auto found = json->find("step");
    if (found == json->end() || !found->is_number_integer() || found->get<std::int64_t>() > step)
      continue;
    kept.append(line);
    kept += '\n';
  }
  return kept;
}

}  // namespace

Result<MetricsFile> MetricsFile::open(const std::string& path, std::int64_t step) {
  auto old = read_file(path);
  if (!old && old.error().code != ErrorCode::kNotFound) return old.error();
  YMIR_TRY(write_file(path, old ? kept_lines(*old, step) : ""));
  MetricsFile file;
  file.path_ = path;
  file.file_.reset(std::fopen(path.c_str(), "ae"));
  if (file.file_ == nullptr)
    return Error{ErrorCode::kUnavailable, path + ": " + std::strerror(errno)};
  return file;
}

Result<> MetricsFile::append(const std::string& line) {
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
      std::fputc('\n', file_.get()) == EOF)
    return Error{ErrorCode::kUnavailable, path_ + ": " + std::strerror(errno)};
  return Ok{};
}

Result<> MetricsFile::write(const StepLine& line) {
  return append(canonical({{"step", line.step},
                           {"epoch", line.epoch},
                           {"samples", line.samples},
                           {"loss", line.loss},
                           {"lr", line.lr},
                           {"time_s", line.seconds}}));
}

Result<> MetricsFile::write(const Evaluation& evaluation, const std::string& split) {
  YMIR_TRY(append(canonical({{"step", evaluation.step},
                             {"epoch", evaluation.epoch},
                             {"metric", evaluation.metrics},
                             {"split", split}})));
  return flush();
}

Result<> MetricsFile::flush() {
  if (std::fflush(file_.get()) != 0)
    return Error{ErrorCode::kUnavailable, path_ + ": " + std::strerror(errno)};
  return Ok{};
}

}  // namespace ymir
