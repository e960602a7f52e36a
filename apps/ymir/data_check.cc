#include "apps/ymir/data_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/tune/data/conversation.h"
#include "ymir/tune/data/dataset.h"
#include "ymir/tune/data/image_processor.h"
#include "ymir/tune/model/backbone_image.h"
#include "ymir/tune/model_files.h"
#include "ymir/tune/petl/targets.h"

namespace ymir::cli {
namespace {

// Says at once what is wrong with the folder itself; what is in the files is for their readers.
Result<> check_folder(const std::string& model) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(model, ignored))
    return Error{ErrorCode::kNotFound, "backbone.model: no such folder: " + model};
  if (std::error_code failed; !std::filesystem::exists(model + "/config.json", failed) && failed)
    return Error{ErrorCode::kPermission,
                 "backbone.model: " + model + "/config.json: " + failed.message()};
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

// What the job asks of the model and its data beyond what the readers see.
Result<> check_kind(const JobSpec& spec, const ModelConfig& model) {
  const bool answers = std::ranges::any_of(spec.metrics, needs_answers);
  if (spec.kind == TaskKind::kLanguageModel && !model.causal)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("task.kind: lm needs a decoder, {} is an encoder ({})", spec.model,
                             model.family)};
  if (answers && !is_conversation_format(spec.data.format))
    return Error{ErrorCode::kInvalidArgument,
                 "evaluate.metrics: metrics of answers need conversations (data.format messages, "
                 "alpaca or sharegpt)"};
  return Ok{};
}

// What the method asks of the model's layers.
Result<> check_method(const MethodSpec& method, const ModelConfig& model) {
  if (method.kind == "top_k" && method.layers > model.num_layers)
    return Error{ErrorCode::kInvalidArgument, fmt::format("method.layers: {}, but the model has {}",
                                                          method.layers, model.num_layers)};
  if (method.kind != "lora") return Ok{};
  const Family& family = family_of(model.family);
  return check_targets(family, model.num_layers, target_modules(family, method));
}

Result<DataVerdict> check(const JobSpec& spec) {
  YMIR_TRY(check_folder(spec.model));
  YMIR_TRY_ASSIGN(const auto tokenizer, read_tokenizer(spec.model));
  YMIR_TRY_ASSIGN(const ModelFiles model,
                  read_model_files(spec.model, tokenizer.get(), cache_folder()));
  YMIR_TRY(check_kind(spec, model.config));
  YMIR_TRY(check_method(spec.method, model.config));
  YMIR_TRY(check_weights(model));
  const DataRequest request = data_request(spec, model.config, "");
  if (request.image) YMIR_TRY(read_image_processor(spec.model, model.config));
  YMIR_TRY_ASSIGN(TaskData data, load_task_data(request, tokenizer.get()));
  DataVerdict verdict;
  verdict.facts = data_facts(data, spec, model.key);
  verdict.faults = data.report.faults.messages();
  verdict.report = std::move(data.report);
  return verdict;
}

}  // namespace

std::vector<std::string> check_job_files(const JobSpec& spec) {
  std::vector<std::string> faults;
  if (const auto found = check_folder(spec.model); !found) faults.push_back(found.error().message);
  for (const auto* files : {&spec.data.train, &spec.data.validation, &spec.data.test})
    for (const std::string& file : *files) {
      std::error_code failed;
      const auto type = std::filesystem::status(file, failed).type();
      if (type == std::filesystem::file_type::not_found) {
        faults.push_back(file + ": no such file or folder");
      } else if (type != std::filesystem::file_type::regular &&
                 type != std::filesystem::file_type::directory) {
        faults.push_back(file + ": " +
                         (failed ? failed.message() : "is neither a file nor a folder"));
      }
    }
  return faults;
}

DataVerdict check_job_data(const JobSpec& spec) {
  auto checked = check(spec);
  if (checked) return *std::move(checked);
  DataVerdict verdict;
  verdict.faults.push_back(checked.error().message);
  return verdict;
}

}  // namespace ymir::cli
