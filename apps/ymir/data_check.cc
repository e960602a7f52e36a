#include "apps/ymir/data_check.h"

#include <unistd.h>

#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/tune/data/dataset.h"
#include "ymir/tune/model_files.h"

namespace ymir::cli {
namespace {

// Says at once what is wrong with the folder itself; what is in the files is for their readers.
Result<> check_folder(const std::string& model) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(model, ignored))
    return Error{ErrorCode::kNotFound, "backbone.model: no such folder: " + model};
  if (!std::filesystem::exists(model + "/config.json", ignored))
    return Error{ErrorCode::kNotFound, "backbone.model: no config.json in " + model};
  const bool tensors = std::filesystem::exists(model + "/model.safetensors", ignored) ||
                       std::filesystem::exists(model + "/model.safetensors.index.json", ignored);
  if (!tensors && std::filesystem::exists(model + "/pytorch_model.bin", ignored))
    return Error{
        ErrorCode::kInvalidArgument,
        "backbone.model: pytorch_model.bin is a pickle and is never loaded; save the model "
        "as model.safetensors: " +
            model};
  return Ok{};
}

Result<DataVerdict> check(const JobSpec& spec) {
  YMIR_TRY(check_folder(spec.model));
  YMIR_TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::load(spec.model));
  YMIR_TRY_ASSIGN(const ModelFiles model, read_model_files(spec.model, tokenizer, cache_folder()));
  YMIR_TRY(ModelWeights::open(spec.model));  // whole safetensors files, or file and tensor named
  DataRequest request;
  request.data = spec.data;
  request.kind = spec.kind;
  request.labels = spec.labels;
  request.max_positions = model.config.max_positions;
  YMIR_TRY_ASSIGN(TaskData data, load_task_data(request, tokenizer));
  DataVerdict verdict;
  verdict.facts = data_facts(data, spec, model.key);
  verdict.faults = data.report.faults.messages();
  verdict.report = std::move(data.report);
  return verdict;
}

}  // namespace

DataVerdict check_job_data(const JobSpec& spec) {
  auto checked = check(spec);
  if (checked) return *std::move(checked);
  DataVerdict verdict;
  verdict.faults.push_back(checked.error().message);
  return verdict;
}

}  // namespace ymir::cli
