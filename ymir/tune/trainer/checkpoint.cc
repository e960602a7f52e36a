#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/leftovers.h"
#include "ymir/tune/trainer/checkpoint_files.h"
#include "ymir/tune/trainer/checkpoint_torch.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 1;
constexpr const char* kState = kCheckpointState;
constexpr const char* kTensors = kCheckpointTensors;

TensorMap tensors_of(const SavedTask& saved, const TaskSetup& setup) {
  TensorMap map;
  const auto block = [&](const ParameterLayout& layout, const at::Tensor& values,
                         const std::string& prefix) {
    if (values.defined()) layout.collect(values, prefix, map);
  };
  const ParameterLayout &adapter = setup.adapter.layout, &head = setup.head.layout;
  block(adapter, saved.adapter, "param/");
  block(head, saved.head, "param/");
  block(adapter, saved.adapter_moments.m, "m/");
  block(head, saved.head_moments.m, "m/");
  block(adapter, saved.adapter_moments.v, "v/");
  block(head, saved.head_moments.v, "v/");
  block(adapter, saved.best.adapter, "best/");
  block(head, saved.best.head, "best/");
  if (saved.joint) {
    block(adapter, saved.joint->m, "shared/m/");
    block(adapter, saved.joint->v, "shared/v/");
  }
  return map;
}

Json state_of(const SavedTask& saved, const std::string& tensors_hash) {
  const CheckpointIdentity& id = saved.identity;
  return {{"version", kVersion},
          {"job", id.job.value},
          {"run", id.run.value},
          {"mode", to_string(id.mode)},
          {"partner", id.partner.value},
          {"settings_hash", id.settings_hash},
          {"numerics", id.numerics},
          {"tensors_sha256", tensors_hash},
          {"has_best", saved.best.adapter.defined()},
          {"has_joint", saved.joint.has_value()},
          {"progress", Json::parse(encode_progress(saved.progress))}};
}

Result<Moments> restore_moments(const ParameterLayout& layout, const TensorMap& tensors,
                                const std::string& prefix) {
  Moments moments;
  YMIR_TRY_ASSIGN(moments.m, layout.restore(tensors, prefix + "m/"));
  YMIR_TRY_ASSIGN(moments.v, layout.restore(tensors, prefix + "v/"));
  return moments;
}

Result<SavedTask> read_checkpoint(const Json& json, const TensorMap& tensors,
                                  const TaskSetup& setup) {
  SavedTask saved;
  const ParameterLayout &adapter = setup.adapter.layout, &head = setup.head.layout;
  YMIR_TRY_ASSIGN(saved.progress, decode_progress(canonical(json.at("progress"))));
  YMIR_TRY_ASSIGN(saved.adapter, adapter.restore(tensors, "param/"));
  YMIR_TRY_ASSIGN(saved.head, head.restore(tensors, "param/"));
  YMIR_TRY_ASSIGN(saved.adapter_moments, restore_moments(adapter, tensors, ""));
  YMIR_TRY_ASSIGN(saved.head_moments, restore_moments(head, tensors, ""));
  if (json.at("has_best").get<bool>()) {
    YMIR_TRY_ASSIGN(saved.best.adapter, adapter.restore(tensors, "best/"));
    YMIR_TRY_ASSIGN(saved.best.head, head.restore(tensors, "best/"));
  }
  if (json.at("has_joint").get<bool>()) {
    YMIR_TRY_ASSIGN(saved.joint, restore_moments(adapter, tensors, "shared/"));
  }
  saved.identity.job.value = json.at("job").get<std::uint64_t>();
  saved.identity.run.value = json.at("run").get<std::uint64_t>();
  saved.identity.partner.value = json.at("partner").get<std::uint64_t>();
  saved.identity.settings_hash = json.at("settings_hash").get<std::string>();
  saved.identity.numerics = json.at("numerics").get<std::string>();
  return saved;
}

}  // namespace

std::string Numerics::text() const {
  return fmt::format("{} {} {} threads={}", instruction_set, library, precision, threads);
}

Result<CheckpointPlace> save_checkpoint(const std::string& folder, const SavedTask& saved,
                                        const TaskSetup& setup) {
  std::string path = fmt::format("{}/checkpoint/step-{}", folder, saved.progress.step);
  std::error_code ignored;
  if (fs::exists(path, ignored)) path += fmt::format("-run-{:x}", saved.identity.run.value);
  fs::remove_all(path, ignored);  // of this very run, cut off before it could tell
  remove_leftovers(folder + "/checkpoint", "step-");  // of killed workers: they can fill a disk
  const std::string temporary = path + ".tmp";
  const auto written = [&]() -> Result<CheckpointPlace> {
    YMIR_TRY(make_folders(temporary));
    YMIR_TRY(write_safetensors(temporary + kTensors, tensors_of(saved, setup)));
    YMIR_TRY_ASSIGN(const std::string tensors_hash, sha256_file(temporary + kTensors));
    const std::string state = canonical(state_of(saved, tensors_hash));
    YMIR_TRY(write_file(temporary + kState, state));
    YMIR_TRY(commit_folder(temporary, path));
    return CheckpointPlace{path, sha256(state)};
  }();
  if (!written) fs::remove_all(temporary, ignored);  // a full disk needs the space
  return written;
}

Result<SavedTask> load_checkpoint(const std::string& path, const std::string& hash,
                                  const std::string& settings_hash, const TaskSetup& setup) {
  YMIR_TRY_ASSIGN(const std::string text, read_file(path + kState));
  if (!hash.empty() && sha256(text) != hash)
    return Error{ErrorCode::kCorruption, "state.json has another hash than was committed: " + path};
  YMIR_TRY_ASSIGN(const Json json, parse_json(text, {.max_bytes = 64u << 20}));
  YMIR_TRY_ASSIGN(const std::string tensors_hash, sha256_file(path + kTensors));
  try {
    if (json.at("version").get<int>() != kVersion)
      return Error{ErrorCode::kCorruption, "checkpoint of another version: " + path};
    if (json.at("tensors_sha256").get<std::string>() != tensors_hash)
      return Error{ErrorCode::kCorruption,
                   "tensors have another hash than state.json says: " + path};
    if (json.at("settings_hash").get<std::string>() != settings_hash)
      return Error{ErrorCode::kConflict, "checkpoint belongs to other settings or data: " + path};
    YMIR_TRY_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(path + kTensors));
    auto saved = read_checkpoint(json, file.tensors(), setup);
    if (!saved) return annotate(saved.error(), path);
    return saved;
  } catch (const Json::exception& e) {
    return Error{ErrorCode::kCorruption, path + kState + ": " + e.what()};
  }
}

}  // namespace ymir
