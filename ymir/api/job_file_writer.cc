#include <fmt/format.h>

#include "ymir/api/job_file.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

// JSON's strings are YAML's double-quoted ones, so a text stays a text whatever it looks like.
std::string quoted(const std::string& text) { return canonical(Json(text)); }

std::string quoted(const std::vector<std::string>& texts) {
  std::vector<std::string> items;
  for (const std::string& text : texts) items.push_back(quoted(text));
  return "[" + join(items, ", ") + "]";
}

std::string quoted(const std::map<std::string, std::string>& map) {
  std::vector<std::string> items;
  for (const auto& [key, value] : map) items.push_back(quoted(key) + ": " + quoted(value));
  return "{" + join(items, ", ") + "}";
}

class Writer {
 public:
  void section(std::string_view name) {
    text_ += fmt::format("{}:\n", name);
    indent_ = "  ";
  }
  void top() { indent_ = ""; }
  template <class T>
  void line(std::string_view key, const T& value) {
    text_ += fmt::format("{}{}: {}\n", indent_, key, value);
  }
  template <class T>
  void line_if(bool present, std::string_view key, const T& value) {
    if (present) line(key, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_{};
  std::string indent_{};
};

void write_data(Writer& w, const DataSpec& data, TaskKind kind) {
  w.section("data");
  w.line("train", quoted(data.train));
  if (data.validation.empty())
    w.line("val_fraction", data.val_fraction);
  else
    w.line("validation", quoted(data.validation));
  w.line_if(!data.test.empty(), "test", quoted(data.test));
  w.line("format", data.format);
  if (data.label_columns.empty()) {
    w.line_if(!data.columns.empty(), "columns", quoted(data.columns));
  } else {
    std::string columns = quoted(data.columns);
    columns.pop_back();
    w.line("columns", fmt::format("{}{}\"label\": {}}}", columns, data.columns.empty() ? "" : ", ",
                                  quoted(data.label_columns)));
  }
  w.line("header", data.header);
  w.line("encoding", data.encoding);
  w.line_if(kind != TaskKind::kLanguageModel, "label", data.label);
  w.line_if(kind == TaskKind::kMultiLabel && data.label_columns.empty(), "label_separator",
            quoted(data.label_separator));
  w.line_if(!data.prompt_template.empty(), "template", data.prompt_template);
  w.line_if(data.max_length > 0, "max_length", data.max_length);
  w.line("overlong", data.overlong);
  w.line("empty", data.empty);
  w.line_if(data.limit > 0, "limit", data.limit);
}

void write_train(Writer& w, const TrainSpec& train) {
  w.section("train");
  w.line("batch", train.batch);
  w.line("lr", train.lr);
  w.line("schedule", train.schedule);
  w.line("warmup", train.warmup);
  w.line("weight_decay", train.weight_decay);
  w.line("betas", fmt::format("[{}, {}]", train.beta1, train.beta2));
  w.line("epsilon", train.epsilon);
  w.line("clip", train.clip);
  w.line_if(train.dropout >= 0, "dropout", train.dropout);
  w.line("precision", train.precision);
  w.line("head_start", train.head_start);
}

void write_stop(Writer& w, const StopSpec& stop) {
  w.section("stop");
  if (stop.max_steps > 0)
    w.line("max_steps", stop.max_steps);
  else
    w.line("max_epochs", stop.max_epochs);
  w.line_if(stop.patience > 0, "patience", stop.patience);
  w.line_if(stop.max_time.count() > 0, "max_time", fmt::format("{}s", stop.max_time.count()));
  w.line_if(stop.require_target, "require_target", true);
}

void write_sharing(Writer& w, const SharingSpec& sharing) {
  w.section("sharing");
  w.line("allow", sharing.allow);
  w.line("trust_domain", quoted(sharing.trust_domain));
  std::vector<std::string> modes;
  if (sharing.temporal) modes.emplace_back("temporal");
  if (sharing.spatial) modes.emplace_back("spatial");
  w.line_if(!modes.empty(), "modes", "[" + join(modes, ", ") + "]");
  w.line("give", sharing.give);
  w.line("take", sharing.take);
  w.line("max_wait_for_partner", fmt::format("{}s", sharing.max_wait_for_partner.count()));
  w.line("explore", sharing.explore);
}

}  // namespace

std::string write_job_file(const JobSpec& spec) {
  Writer w;
  w.line("ymir", 1);
  w.line("name", quoted(spec.name));
  w.line_if(!spec.description.empty(), "description", quoted(spec.description));
  w.line_if(!spec.tags.empty(), "tags", quoted(spec.tags));
  w.section("backbone");
  w.line("model", quoted(spec.model));
  w.section("task");
  w.line("kind", to_string(spec.kind));
  w.line_if(!spec.labels.empty(), "labels", quoted(spec.labels));
  write_data(w, spec.data, spec.kind);
  w.section("method");
  w.line("kind", spec.method.kind);
  w.line("rank", spec.method.rank);
  w.line("alpha", spec.method.alpha);
  w.line("dropout", spec.method.dropout);
  w.line("targets", quoted(spec.method.targets));
  w.line("rslora", spec.method.rank_stabilised);
  w.line("dora", spec.method.magnitude);
  w.line("width", spec.method.width);
  w.line("length", spec.method.length);
  w.line("layers", spec.method.layers);
  write_train(w, spec.train);
  w.line_if(spec.kind == TaskKind::kLanguageModel, "loss_on", spec.data.loss_on);
  write_stop(w, spec.stop);
  if (!spec.target.metric.empty()) {
    w.section("target");
    w.line("metric", spec.target.metric);
    w.line("value", spec.target.value);
  }
  w.section("evaluate");
  w.line("every", spec.evaluate_steps > 0 ? fmt::format("{} steps", spec.evaluate_steps)
                                          : fmt::format("{} epochs", spec.evaluate_epochs));
  w.line("metrics", quoted(spec.metrics));
  w.line_if(spec.kind == TaskKind::kLanguageModel, "answer_length", spec.answer_length);
  w.top();
  w.line("priority", spec.priority);
  w.line_if(spec.deadline.has_value(), "deadline", format_time(spec.deadline.value_or(Time{})));
  w.section("resources");
  std::vector<std::string> sizes;
  for (const int size : spec.sizes) sizes.push_back(std::to_string(size));
  w.line("gpus", fmt::format("{{min: {}, max: {}{}}}", spec.min_gpus, spec.max_gpus,
                             sizes.empty() ? "" : ", sizes: [" + join(sizes, ", ") + "]"));
  write_sharing(w, spec.sharing);
  w.section("checkpoint");
  w.line("every", fmt::format("{}s", spec.checkpoint_every.count()));
  w.top();
  w.line("seed", spec.seed);
  return w.take();
}

}  // namespace ymir
