#include "ymir/sim/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ymir/base/json.h"
#include "ymir/base/text.h"

namespace ymir {

namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
constexpr std::size_t kMaxJobs = 1'000'000;
constexpr std::int64_t kMaxGpus = 100'000;  // of a job

Error wrong(const std::string& what) { return {ErrorCode::kInvalidArgument, what}; }

// Fields of one JSON object, each checked; the first fault stays.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  double number(const char* key, double fallback, double least, double most) {
    const auto found = json_.find(key);
    if (found == json_.end()) return fallback;
    const double value = found->is_number() ? found->get<double>() : std::nan("");
    if (!(value >= least && value <= most))
      fault(fmt::format("{} must be a number in {}..{}", key, least, most));
    return value;
  }
  std::int64_t whole(const char* key, std::int64_t fallback, std::int64_t least,
                     std::int64_t most) {
    const double value = number(key, static_cast<double>(fallback), static_cast<double>(least),
                                static_cast<double>(most));
    if (value != std::floor(value)) fault(fmt::format("{} must be a whole number", key));
    return fault_.empty() ? static_cast<std::int64_t>(value) : fallback;
  }
  std::string text(const char* key) {
    const auto found = json_.find(key);
    if (found == json_.end() || !found->is_string() || found->get<std::string>().empty() ||
        found->get<std::string>().size() > 256) {
      fault(fmt::format("{} must be a text of 1..256 bytes", key));
      return "";
    }
    return found->get<std::string>();
  }
  bool yes_no(const char* key, bool fallback) {
    const auto found = json_.find(key);
    if (found == json_.end()) return fallback;
    if (!found->is_boolean()) fault(fmt::format("{} must be true or false", key));
    return found->is_boolean() && found->get<bool>();
  }
  Result<> ok() const { return fault_.empty() ? Result<>(Ok{}) : Result<>(wrong(fault_)); }

 private:
  void fault(std::string what) {
    if (fault_.empty()) fault_ = std::move(what);
  }
  const Json& json_;
  std::string fault_;
};

Result<> read_gains(const Json& json, Workload& workload) {
  const auto is_gain = [](const Json& value) {
    return value.is_number() && value.get<double>() > -0.9 && value.get<double>() < 100;
  };
  const Json temporal = json.value("temporal", Json::object());
  if (!temporal.is_object()) return wrong("temporal must be an object");
  for (const auto& [pair, gain] : temporal.items()) {
    if (!is_gain(gain)) return wrong("gain must be in -0.9..100: " + pair);
    workload.temporal[pair] = gain.get<double>();
  }
  const Json spatial = json.value("spatial", Json::object());
  if (!spatial.is_object()) return wrong("spatial must be an object");
  for (const auto& [pair, values] : spatial.items()) {
    if (!values.is_array() || values.size() != 3 || !is_gain(values[0]) || !is_gain(values[1]) ||
        !is_gain(values[2]) || values[2].get<double>() <= 0)
      return wrong("spatial must be [gain, gain, joint > 0]: " + pair);
    workload.spatial[pair] = {values[0].get<double>(), values[1].get<double>(),
                              values[2].get<double>()};
  }
  return Ok{};
}

Result<> read_header(const Json& json, Workload& workload) {
  if (!json.is_object() || json.value("format", Json()) != Json("ymir"))
    return wrong("the first line must be an object with \"format\":\"ymir\"");
  Fields fields(json);
  if (fields.whole("version", 1, 1, 1'000'000) != 1) return wrong("knows only version 1");
  workload.nodes = static_cast<int>(fields.whole("nodes", 1, 1, 100'000));
  workload.gpus_per_node = static_cast<int>(fields.whole("gpus_per_node", 4, 1, 1024));
  workload.seed = static_cast<std::uint64_t>(fields.whole("seed", 0, 0, std::int64_t{1} << 53));
  YMIR_TRY(fields.ok());
  if (const auto generator = json.find("generator"); generator != json.end()) {
    if (!generator->is_object()) return wrong("generator must be an object");
    workload.generator = canonical(*generator);
  }
  return read_gains(json, workload);
}

// [[gpus, nodes, seconds], ...], ascending.
Result<StepTimes> read_table(const Json& json) {
  StepTimes table;
  const auto rows = json.find("table");
  if (rows == json.end()) return table;
  if (!rows->is_array() || rows->empty() || rows->size() > 4096)
    return wrong("table must be a list of 1..4096 rows");
  for (const Json& row : *rows) {
    const bool numbers = row.is_array() && row.size() == 3 && row[0].is_number_integer() &&
                         row[1].is_number_integer() && row[2].is_number();
    if (!numbers) return wrong("a row of table must be [gpus, nodes, seconds]");
    const StepTimes::Row made{row[0].get<int>(), row[1].get<int>(), row[2].get<double>()};
    const bool sound = made.gpus >= 1 && made.gpus <= kMaxGpus && made.nodes >= 1 &&
                       made.nodes <= made.gpus && made.seconds > 0 && made.seconds <= 1e6;
    if (!sound) return wrong("a row of table is out of range");
    if (!table.rows.empty() && std::pair(made.gpus, made.nodes) <=
                                   std::pair(table.rows.back().gpus, table.rows.back().nodes))
      return wrong("rows of table must ascend");
    table.rows.push_back(made);
  }
  if (const auto source = json.find("table_source"); source != json.end()) {
    if (!source->is_string() || source->get<std::string>().size() > 256)
      return wrong("table_source must be a text of at most 256 bytes");
    table.source = source->get<std::string>();
  }
  return table;
}

Result<WorkloadJob> read_job(const Json& json) {
  if (!json.is_object()) return wrong("not an object");
  Fields fields(json);
  WorkloadJob job;
  job.name = fields.text("name");
  job.at = fields.number("at", 0, 0, 1e9);
  job.backbone = fields.text("backbone");
  job.task = fields.text("task");
  job.steps = fields.whole("steps", 100, 1, 1'000'000'000);
  job.steps_per_epoch = fields.whole("steps_per_epoch", 10, 1, 1'000'000'000);
  job.max_steps = fields.whole("max_steps", 4 * job.steps, 1, 4'000'000'000);
  job.step_time = fields.number("step_time", 1, 1e-6, 1e6);
  job.scaling = fields.number("scaling", 0.95, 0.1, 2);
  job.gpus = static_cast<int>(fields.whole("gpus", 1, 1, kMaxGpus));
  job.min_gpus = static_cast<int>(fields.whole("min_gpus", 1, 1, job.gpus));
  job.max_gpus = static_cast<int>(fields.whole("max_gpus", job.gpus, job.gpus, kMaxGpus));
  job.share = fields.yes_no("share", true);
  if (json.contains("domain")) job.domain = fields.text("domain");
  job.start_s = fields.number("start_s", -1, -1, 1e6);
  YMIR_TRY_ASSIGN(job.table, read_table(json));
  YMIR_TRY(fields.ok());
  return job;
}

}  // namespace

Result<Workload> parse_workload(const std::string& name, const std::string& text) {
  if (text.size() > kMaxBytes) return Error{ErrorCode::kExhausted, name + ": larger than 1 GiB"};
  if (text.starts_with("\xef\xbb\xbf"))
    return wrong(name + ":1: begins with a byte order mark (save the file as UTF-8 without one)");
  Workload workload;
  int number = 0;
  bool header = false;
  std::map<std::string, int> line_of;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const std::string where = fmt::format("{}:{}", name, number);
    const auto json = parse_json(line, {.max_bytes = 1 << 20, .max_depth = 8});
    if (!json) return annotate(json.error(), where);
    if (!header) {
      header = true;
      if (auto read = read_header(*json, workload); !read) return annotate(read.error(), where);
      continue;
    }
    auto job = read_job(*json);
    if (!job) return annotate(job.error(), where);
    if (!workload.jobs.empty() && job->at < workload.jobs.back().at)
      return wrong(where + ": submitted before the job above it");
    job->line = number;
    if (const auto [first, fresh] = line_of.emplace(job->name, number); !fresh)
      return wrong(
          fmt::format("{}: the name is taken by line {}: {}", where, first->second, job->name));
    if (workload.jobs.size() >= kMaxJobs) return wrong(where + ": more than a million jobs");
    workload.jobs.push_back(*std::move(job));
  }
  if (workload.jobs.empty()) return wrong(name + ": no jobs");
  return workload;
}

std::string to_text(const Workload& workload) {
  Json header{{"format", "ymir"},           {"version", 1},
              {"nodes", workload.nodes},    {"gpus_per_node", workload.gpus_per_node},
              {"seed", workload.seed},      {"temporal", workload.temporal},
              {"spatial", workload.spatial}};
  if (const auto generator = parse_json(workload.generator); generator && generator->is_object())
    header["generator"] = *generator;
  std::string text = canonical(header) + "\n";
  for (const WorkloadJob& job : workload.jobs) {
    Json line{{"name", job.name},           {"at", job.at},
              {"backbone", job.backbone},   {"task", job.task},
              {"steps", job.steps},         {"steps_per_epoch", job.steps_per_epoch},
              {"max_steps", job.max_steps}, {"step_time", job.step_time},
              {"scaling", job.scaling},     {"gpus", job.gpus},
              {"min_gpus", job.min_gpus},   {"max_gpus", job.max_gpus},
              {"share", job.share}};
    if (job.domain != WorkloadJob{}.domain) line["domain"] = job.domain;
    if (job.start_s >= 0) line["start_s"] = job.start_s;
    if (!job.table.rows.empty()) {
      line["table_source"] = job.table.source;
      for (const StepTimes::Row& row : job.table.rows)
        line["table"].push_back(Json::array({row.gpus, row.nodes, row.seconds}));
    }
    text += canonical(line) + "\n";
  }
  return text;
}

JobTruth truth_of(const WorkloadJob& job) {
  return {.steps = job.steps,
          .steps_per_epoch = job.steps_per_epoch,
          .max_steps = job.max_steps,
          .step_time = Seconds(job.step_time),
          .scaling = job.scaling,
          .table = job.table,
          .start_time = Seconds(job.start_s),
          .family = job.backbone + "/" + job.task};
}

double solo_seconds(const WorkloadJob& job, int gpus) {
  JobModel model;
  model.add(JobId{1}, truth_of(job));
  return static_cast<double>(job.steps) * model.step_time(JobId{1}, gpus).count();
}

double offered_load(const Workload& workload) {
  double gpu_seconds = 0;
  for (const WorkloadJob& job : workload.jobs)
    gpu_seconds += solo_seconds(job, job.gpus) * job.gpus;
  const double span =
      workload.jobs.empty() ? 0 : workload.jobs.back().at - workload.jobs.front().at;
  const double gpus = static_cast<double>(workload.nodes) * workload.gpus_per_node;
  return span > 0 ? gpu_seconds / (gpus * span) : 0;
}

}  // namespace ymir
