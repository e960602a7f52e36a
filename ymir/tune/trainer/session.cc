#include "ymir/tune/session.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <list>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/log.h"
#include "ymir/core/codec.h"
#include "ymir/tune/model/exact_rows_torch.h"
#include "ymir/tune/trainer/export_torch.h"
#include "ymir/tune/trainer/profile_run_torch.h"
#include "ymir/tune/trainer/run_torch.h"

namespace ymir {
namespace {

namespace fs = std::filesystem;

// Size and time of change of each file: equal text, no need to read again.
std::string fingerprint(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) {
    std::error_code error;
    const auto size = fs::file_size(path, error);
    const auto changed = fs::last_write_time(path, error).time_since_epoch().count();
    text += fmt::format("{} {} {}\n", path, error ? 0 : size, error ? 0 : changed);
  }
  return text;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_regular_file(error)) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

struct LoadedModel {
  std::string folder{}, fingerprint{};
  std::shared_ptr<const Tokenizer> tokenizer{};  // null: of images
  std::unique_ptr<Backbone> backbone{};
};

struct LoadedData {
  std::string fingerprint{};
  std::shared_ptr<const JobData> data{};
};

}  // namespace

Result<> SessionOptions::validate() const {
  if (num_threads < 1)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("num_threads must be >= 1: {}", num_threads)};
  if (cache.empty()) return Error{ErrorCode::kInvalidArgument, "cache must name a folder"};
  if (max_backbones < 1) return Error{ErrorCode::kInvalidArgument, "max_backbones must be >= 1"};
  return Ok{};
}

struct Session::State {
  SessionOptions options{};
  std::list<LoadedModel> models{};  // newest use first
  std::list<LoadedData> data{};
  static constexpr std::size_t kMaxData = 16;

  struct Found {
    const LoadedModel* model = nullptr;
    bool was_loaded = false;
  };

  // Reads, or finds among what is loaded, a model folder; bf16 copies when asked for.
  Result<Found> model(const std::string& folder, bool with_bf16) {
    const std::string print = fingerprint(files_in(folder));
    for (auto it = models.begin(); it != models.end(); ++it) {
      if (it->folder != folder || it->fingerprint != print) continue;
      if (with_bf16 && !it->backbone->image.has_bf16()) break;
      models.splice(models.begin(), models, it);
      return Found{&models.front(), true};
    }
    LoadedModel loaded{folder, print, nullptr, nullptr};
    YMIR_TRY_ASSIGN(loaded.tokenizer, read_tokenizer(folder));
    YMIR_TRY_ASSIGN(const ModelFiles files,
                    read_model_files(folder, loaded.tokenizer.get(), options.cache));
    YMIR_TRY_ASSIGN(const at::Device device, find_device(options.device));
    YMIR_TRY_ASSIGN(loaded.backbone, open_backbone(files, options.cache, with_bf16, device));
    models.remove_if([&](const LoadedModel& old) { return old.folder == folder; });
    models.push_front(std::move(loaded));
    if (models.size() > options.max_backbones) models.pop_back();
    return Found{&models.front(), false};
  }

  Result<std::shared_ptr<const JobData>> data_of(const JobSpec& spec, const LoadedModel& model,
                                                 bool* was_loaded) {
    JobSpec reduced;
    reduced.kind = spec.kind;
    reduced.labels = spec.labels;
    reduced.data = spec.data;
    std::vector<std::string> paths = spec.data.train;
    paths.insert(paths.end(), spec.data.validation.begin(), spec.data.validation.end());
    paths.insert(paths.end(), spec.data.test.begin(), spec.data.test.end());
    const std::string print = model.backbone->files.key + encode(reduced) + fingerprint(paths);
    for (auto it = data.begin(); it != data.end(); ++it) {
      if (it->fingerprint != print) continue;
      data.splice(data.begin(), data, it);
      return data.front().data;
    }
    *was_loaded = false;
    YMIR_TRY_ASSIGN(auto loaded,
                    load_job_data(spec, model.backbone->files, model.tokenizer, options.cache));
    data.push_front({print, loaded});
    if (data.size() > kMaxData) data.pop_back();
    return loaded;
  }
};

namespace {

Result<> check_order(const StartRun& order) {
  const std::size_t wanted = order.mode == Mode::kSpatial ? 2 : 1;
  const bool may_be_more = order.mode == Mode::kNormal && !order.profile;
  if (order.tasks.size() < wanted || (order.tasks.size() > wanted && !may_be_more))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a {} run has {} task(s): {}", to_string(order.mode), wanted,
                             order.tasks.size())};
  for (const TaskOrder& task : order.tasks) {
    const TrainSpec& train = task.spec.train;
    if (train.precision != "f32" && train.precision != "bf16")
      return Error{ErrorCode::kInvalidArgument, "precision is not f32 or bf16: " + train.precision};
    if (train.head_start != "random" && train.head_start != "fit")
      return Error{ErrorCode::kInvalidArgument,
                   "head_start is not random or fit: " + train.head_start};
    if (train.batch < 1)
      return Error{ErrorCode::kInvalidArgument, fmt::format("batch must be >= 1: {}", train.batch)};
    const TaskOrder& first = order.tasks.front();
    const auto conflict = [&](const char* what, const std::string& a, const std::string& b) {
      return Error{ErrorCode::kConflict,
                   fmt::format("{} and {} can't train in one run: {} {} and {}", title_of(first),
                               title_of(task), what, a, b)};
    };
    if (task.spec.model != first.spec.model)
      return conflict("backbones", first.spec.model, task.spec.model);
    if (train.precision != first.spec.train.precision)
      return conflict("precisions", first.spec.train.precision, train.precision);
  }
  return Ok{};
}

RunStopped stopped_event(const RunMembers& members, const StartRun& order, const char* why,
                         double seconds) {
  RunStopped event;
  event.run = order.run;
  event.why = why;
  for (const auto& job : members.jobs) {
    if (!job->progress.ended.empty()) continue;
    event.jobs.push_back(job->order.job);
    event.steps.push_back(job->progress.step);
  }
  event.busy = Seconds(seconds * static_cast<double>(std::max<std::size_t>(1, order.slots.size())));
  return event;
}

}  // namespace

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::open(const SessionOptions& options) {
  YMIR_TRY(options.validate());
  YMIR_TRY(find_device(options.device));
  YMIR_TRY(make_folders(options.cache));
  auto state = std::make_unique<State>(State{.options = options});
  try {
    at::set_num_interop_threads(1);
    at::set_num_threads(options.num_threads);
  } catch (const std::exception& e) {
    log::debug("threads were set before: {}", e.what());
  }
  return std::unique_ptr<Session>(new Session(std::move(state)));
}

namespace {

// The part of run() after everything is loaded.
Result<> carry_out(RunMembers& members, const RunContext& context, const StartRun& order,
                   double seconds_before) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return seconds_before +
           std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const ProfileLimit limit{order.profile, order.profile_steps, order.profile_time};
  YMIR_TRY_ASSIGN(const RunEnd end, train(members, context, limit));
  const char* why = "stopped";
  switch (end) {
    case RunEnd::kStoppedNow:
      return Error{ErrorCode::kUnavailable, "told to stop at once"};
    case RunEnd::kStopped:
      YMIR_TRY(leave(members, context, members.pair));
      break;
    case RunEnd::kFinished:
      why = "finished";
      break;
    case RunEnd::kPartnerFinished:
      YMIR_TRY(leave(members, context, false));
      why = "partner_finished";
      break;
    case RunEnd::kProfileDone: {
      YMIR_TRY(leave(members, context, false));
      JobRun& job = *members.jobs.front();
      YMIR_TRY_ASSIGN(const Profile profile,
                      measure_profile(job, context, {order.want_vector, order.probes, seconds()}));
      context.reports.event(ProfileFinished{job.order.job, order.run, profile});
      why = "profile_done";
      break;
    }
  }
  context.reports.event(stopped_event(members, order, why, seconds()));
  return Ok{};
}

}  // namespace

Result<> Session::run(const StartRun& order, const RunReports& reports, const StopFlag& stop) try {
  const auto begin = std::chrono::steady_clock::now();
  YMIR_TRY(check_order(order));
  const int threads = std::max(1, order.num_threads) *
                      static_cast<int>(std::max<std::size_t>(1, order.slots.size()));
  at::set_num_threads(threads);
  const std::string& precision = order.tasks.front().spec.train.precision;
  const bool bf16 = precision == "bf16";
  YMIR_TRY_ASSIGN(const State::Found found, state_->model(order.tasks.front().spec.model, bf16));
  const Backbone& backbone = *found.model->backbone;
  const std::string processor =
      state_->options.device == "cpu" ? kernels::instruction_set() : state_->options.device;
  const std::string library = fmt::format("torch {} kernels {}", TORCH_VERSION, kernels::kRevision);
  const Numerics numerics{processor, library, precision, threads};
  Numerics of_rows = numerics;
  if (has_exact_rows(bf16)) of_rows.threads = 0;  // workers with any number share them
  const RunContext context{backbone,
                           bf16 ? backbone.encoder16 : backbone.encoder,
                           order.run,
                           order.mode,
                           numerics.text(),
                           of_rows.text(),
                           reports,
                           stop,
                           {state_->options.cache + "/frozen", state_->options.frozen_outputs},
                           order.mode == Mode::kNormal && order.tasks.size() > 1};
  RunMembers members;
  bool data_loaded = true;
  for (const TaskOrder& task : order.tasks) {
    const auto blame = [&](const Error& error) {
      return order.tasks.size() == 1 ? error : annotate(error, title_of(task));
    };
    auto data = state_->data_of(task.spec, *found.model, &data_loaded);
    if (!data) return blame(data.error());
    auto job = prepare_job(task, *std::move(data), context);
    if (!job) return blame(job.error());
    members.jobs.push_back(*std::move(job));
  }
  if (order.mode == Mode::kSpatial) YMIR_TRY(join(members, context));
  if (context.together) YMIR_TRY(check_together(members));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const StartKind how = !found.was_loaded ? StartKind::kCold
                        : data_loaded     ? StartKind::kSwap
                                          : StartKind::kWarm;
  reports.event(RunStarted{order.run, how, seconds * 1e3});
  return carry_out(members, context, order, seconds);
} catch (const std::exception& e) {  // of torch
  return Error{ErrorCode::kInternal, e.what()};
}

namespace {

// The names of the labels that `chosen` says yes to.
Json label_names(const std::vector<std::string>& labels,
                 const std::function<bool(std::size_t)>& chosen) {
  Json names = Json::array();
  for (std::size_t label = 0; label < labels.size(); ++label)
    if (chosen(label)) names.push_back(labels[label]);
  return names;
}

Json prediction(const Outcomes& outcomes, std::size_t row, const std::vector<std::string>& labels) {
  const auto width = static_cast<std::size_t>(outcomes.outputs);
  const std::span<const float> scores = std::span(outcomes.scores).subspan(row * width, width);
  Json line = {{"row", row}, {"scores", std::vector<float>(scores.begin(), scores.end())}};
  switch (outcomes.kind) {
    case TaskKind::kClassify:
      line["label"] = labels[static_cast<std::size_t>(outcomes.classes[row])];
      line["prediction"] =
          labels[static_cast<std::size_t>(outcomes.predicted(static_cast<std::int64_t>(row)))];
      break;
    case TaskKind::kMultiLabel: {
      const std::span<const float> truth = std::span(outcomes.values).subspan(row * width, width);
      line["label"] = label_names(labels, [&](std::size_t i) { return truth[i] > 0.5f; });
      line["prediction"] = label_names(labels, [&](std::size_t i) { return scores[i] > 0; });
      break;
    }
    default:
      line["label"] = outcomes.values[row];
      line["prediction"] = scores.front();
  }
  return line;
}

Result<> write_predictions(const std::string& path, const Outcomes& outcomes,
                           const std::vector<std::string>& labels) {
  std::string text;
  if (outcomes.kind == TaskKind::kLanguageModel) {
    for (std::size_t row = 0; row < outcomes.written.size(); ++row)
      text += canonical(Json{{"row", row},
                             {"label", outcomes.wanted[row]},
                             {"prediction", outcomes.written[row]},
                             {"scores", Json::array()}}) +
              "\n";
  } else {
    for (std::size_t row = 0; row < static_cast<std::size_t>(outcomes.rows()); ++row)
      text += canonical(prediction(outcomes, row, labels)) + "\n";
  }
  return write_file(path, text);
}

}  // namespace

Result<std::map<std::string, double>> Session::evaluate(const EvaluateRequest& request) try {
  YMIR_TRY_ASSIGN(const State::Found found, state_->model(request.model, false));
  const Backbone& backbone = *found.model->backbone;
  YMIR_TRY_ASSIGN(const LoadedAdapter loaded,
                  request.adapter.empty() ? load_own_head(backbone.files, backbone.encoder)
                                          : load_adapter(request.adapter, backbone.encoder));
  if (!loaded.backbone.empty() && loaded.backbone != backbone.files.key)
    log::warning("{} was trained on another backbone than {} (weights, tokenizer or configuration)",
                 request.adapter, request.model);
  const ModelConfig& config = backbone.files.config;
  DataRequest wanted;
  wanted.data = request.data;
  if (wanted.data.prompt_template.empty()) wanted.data.prompt_template = loaded.prompt_template;
  wanted.kind = loaded.setup.kind;
  wanted.labels = request.labels.empty() ? loaded.labels : request.labels;
  wanted.max_positions = config.max_positions;
  wanted.image = image_form(config);
  wanted.cache = state_->options.cache;
  YMIR_TRY_ASSIGN(const EvaluationData data,
                  load_evaluation_data(
                      wanted, request.data.validation,
                      request.data.max_length > 0 ? request.data.max_length : loaded.max_length,
                      found.model->tokenizer.get()));
  if (!data.report.usable())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}", fmt::join(data.report.faults.messages(), "\n"))};
  RowForm form{loaded.setup.kind, loaded.setup.outputs, {}};
  if (wanted.image) {
    YMIR_TRY_ASSIGN(form.images, read_image_processor(request.model, config));
  }
  const EvaluationRows rows = evaluation_rows(data.rows, form);
  const auto go_on = [] { return true; };
  YMIR_TRY_ASSIGN(Outcomes outcomes, evaluate_rows(loaded.setup, loaded.adapter, loaded.head,
                                                   backbone.encoder, rows, go_on));
  if (!outcomes.finite())
    return Error{
        ErrorCode::kCorruption,
        fmt::format("the outputs are not finite: the weights of {}{} hold NaN, infinity or numbers "
                    "that are too large",
                    request.model, request.adapter.empty() ? "" : " or of " + request.adapter)};
  if (std::ranges::any_of(request.metrics, needs_answers)) {
    YMIR_TRY_ASSIGN(
        Answers answers,
        write_answers(loaded.setup, loaded.adapter, backbone.encoder, rows,
                      answer_form(wanted.data, found.model->tokenizer, config.max_positions),
                      request.answer_length, go_on));
    outcomes.written = std::move(answers.written);
    outcomes.wanted = std::move(answers.wanted);
  }
  if (!request.predictions.empty())
    YMIR_TRY(write_predictions(request.predictions, outcomes, wanted.labels));
  return compute_metrics(outcomes);
} catch (const std::exception& e) {
  return Error{ErrorCode::kInternal, e.what()};
}

}  // namespace ymir
