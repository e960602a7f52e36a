// JobSpec: one fine-tuning job as submitted, every default resolved. A value; what
// happens to the job later is in the Snapshot.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ymir/base/id.h"
#include "ymir/base/time.h"

namespace ymir {

using JobId = Id<struct JobTag>;      // printed j17
using RunId = Id<struct RunTag>;      // era << 48 | counter; grows, never used twice; fencing token
using PlaceId = Id<struct PlaceTag>;  // slots of one node for a time

enum class Mode { kNormal, kTemporal, kSpatial };
enum class TaskKind { kClassify, kMultiLabel, kRegress, kLanguageModel };

struct DataSpec {
  std::vector<std::string> train{};       // absolute paths
  std::vector<std::string> validation{};  // empty: val_fraction of train
  double val_fraction = 0;
  std::vector<std::string> test{};
  // Rows of text: csv tsv jsonl json lines. Conversations: messages alpaca sharegpt. Images: folder
  // idx cifar10 cifar100 pixels. auto: by the file's name and what the model reads.
  std::string format = "auto";
  std::map<std::string, std::string> columns{};  // text, text_pair, label -> name or number
  std::string header = "auto";                   // auto yes no
  std::string encoding = "utf-8";
  std::string label = "auto";  // auto int name float
  int max_length = 0;          // tokens; 0 = auto
  std::string overlong = "truncate";
  std::string empty = "error";  // rows whose text or label is empty: error drop
  std::int64_t limit = 0;       // rows; 0 = all
  // multi_label: what stands between the labels of a row, or instead a column a label, 0 or 1.
  std::string label_separator = ",";
  std::vector<std::string> label_columns{};
  // lm: how a conversation becomes text (empty: what its format is usually written with), and what
  // of it is learnt: completion (the answers) or all.
  std::string prompt_template{};
  std::string loss_on = "completion";
};

struct MethodSpec {
  std::string kind = "lora";  // lora bottleneck prefix bitfit top_k full
  int rank = 8;               // lora
  double alpha = 16;
  double dropout = 0;
  std::vector<std::string> targets{};  // module names, e.g. query, value; empty: the family's
  bool rank_stabilised = false;        // scale alpha / sqrt(rank)
  bool magnitude = false;              // DoRA
  std::map<std::string, int> rank_pattern{};  // by end of a module's name
  std::map<std::string, double> alpha_pattern{};
  int width = 64;   // bottleneck
  int length = 20;  // prefix: virtual tokens
  int layers = 2;   // top_k
};

struct TrainSpec {
  int batch = 32;  // global rows a step, whatever the number of GPUs
  double lr = 1e-3;
  std::string schedule = "linear";  // linear cosine constant
  double warmup = 0;                // < 1: fraction of all steps; else steps
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double clip = 1.0;              // 0 = off
  double dropout = -1;            // of the backbone; -1 = what its config says
  std::string precision = "f32";  // f32 bf16
  std::string head_start = "random";
};

struct StopSpec {
  int max_epochs = 10;         // 0: max_steps counts
  std::int64_t max_steps = 0;  // 0: max_epochs counts
  int patience = 0;            // evaluations without a new best; 0 = off
  Seconds max_time{0};         // of training; 0 = off
  bool require_target = false;
};

struct TargetSpec {
  std::string metric{};  // empty: no target
  double value = 0;
};

struct SharingSpec {
  bool allow = true;
  std::string trust_domain{};
  bool temporal = true, spatial = true;
  bool give = true, take = true;
  Seconds max_wait_for_partner{120};
  bool explore = false;
};

struct JobSpec {
  std::string name{};
  std::string owner{};
  std::string description{};
  std::map<std::string, std::string> tags{};
  std::string model{};  // absolute directory
  TaskKind kind = TaskKind::kClassify;
  std::vector<std::string> labels{};  // empty: from the data
  DataSpec data{};
  MethodSpec method{};
  TrainSpec train{};
  StopSpec stop{};
  TargetSpec target{};
  std::int64_t evaluate_steps = 0;     // 0: evaluate_epochs counts
  double evaluate_epochs = 1;          // 0.5 = twice an epoch
  std::vector<std::string> metrics{};  // reported; the first is the one judged without a target
  int answer_length = 128;  // lm, metrics of generated answers: tokens an answer may have
  int priority = 50;
  std::optional<Time> deadline{};
  int min_gpus = 1, max_gpus = 1;
  std::vector<int> sizes{};  // GPU counts allowed, ascending; empty: every one in min..max
  SharingSpec sharing{};
  Seconds checkpoint_every{600};
  std::uint64_t seed = 0;
  std::string output_dir{};  // not read; stays: the hash of a checkpoint's settings has it
};

// What the data check found; known before the first round that offers the job.
struct DataFacts {
  std::int64_t train_rows = 0, validation_rows = 0;
  int num_labels = 0;
  double mean_tokens = 0;
  int max_length = 0;
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;  // at max_epochs or max_steps
  std::string data_hash{};       // of rows and settings; equal hash = same data
  std::string backbone{};        // hash of weights and tokenizer: jobs of one backbone may share
};

// What is judged where the job names no metric.
std::string default_metric(TaskKind kind);
// bleu, rouge_1, rouge_2, rouge_l, exact_match, answer_f1: of answers that a language model writes.
bool needs_answers(const std::string& metric);
// The metric that decides what is best and whether the target is reached: the target's, else the
// first one reported, else the default of its kind.
std::string judged_metric(const JobSpec& spec);
// True when larger is better. loss and perplexity are the other kind.
bool larger_is_better(const std::string& metric);
// `value` meets the target: >= or <= by the metric's direction; NaN never does.
bool reaches(const TargetSpec& target, double value);

// What is trained, as a name: "lora r8 query,value". Jobs of one method name may share.
std::string method_name(const MethodSpec& method);

std::string to_string(JobId id);    // j17
std::string to_string(RunId id);    // r3.9: era 3, counter 9
std::string to_string(PlaceId id);  // p2
std::string to_string(Mode mode);
std::string to_string(TaskKind kind);
// Exactly the form that to_string prints; nothing else is an id.
std::optional<JobId> parse_job_id(const std::string& text);
std::optional<RunId> parse_run_id(const std::string& text);
std::optional<PlaceId> parse_place_id(const std::string& text);

}  // namespace ymir
