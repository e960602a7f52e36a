// validate, check-data, tokenize, merge: files in, no daemon.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "apps/ymir/data_check.h"
#include "apps/ymir/job_input.h"
#include "apps/ymir/terminal.h"
#include "apps/ymir/verb.h"
#include "ymir/base/json.h"
#include "ymir/core/codec.h"
#include "ymir/tune/data/tokenizer.h"
#include "ymir/tune/merge.h"

namespace ymir::cli {
namespace {

Json facts_json(const DataFacts& facts) {
  // The codec knows the field names: DataChecked carries the facts.
  const auto body = parse_json(encode_body(DataChecked{JobId{1}, facts}));
  return body ? (*body)["facts"] : Json::object();
}

// --- validate ---

struct ValidateOptions {
  std::vector<std::string> files{};
  bool no_data = false;
};

void print_report(const JobInput& input, const DataVerdict* verdict) {
  for (const std::string& note : input.notes)
    std::fprintf(stderr, "%s: note: %s\n", input.file.c_str(), note.c_str());
  print_faults(input);
  if (verdict == nullptr) {
    if (input.faults.empty()) print(fmt::format("{}: the job file is good\n", input.file));
    return;
  }
  if (verdict->report) print(verdict->report->text());
  std::fflush(stdout);  // before what is wrong with it
  for (const std::string& fault : verdict->faults)
    std::fprintf(stderr, "%s\n", placed(input, fault).c_str());
  if (verdict->faults.empty())
    print(fmt::format("{}: good; {} steps an epoch, at most {} steps\n", input.file,
                      verdict->facts.steps_per_epoch, verdict->facts.total_steps));
}

int validate(const Globals& globals, const ValidateOptions& options) {
  Json data = Json::array();
  bool good = true;
  for (const std::string& file : options.files) {
    const auto input = read_job_input(file);
    if (!input) return tell(globals, kUsage, input.error().message);
    std::optional<DataVerdict> verdict;
    if (input->faults.empty() && !options.no_data) verdict = check_job_data(input->spec);
    const bool valid = input->faults.empty() && (!verdict || verdict->faults.empty());
    good = good && valid;
    if (!globals.json) {
      print_report(*input, verdict ? &*verdict : nullptr);
      continue;
    }
    Json entry{{"file", file}, {"valid", valid}, {"faults", Json::parse(faults_json({*input}))}};
    if (verdict) {
      entry["data_faults"] = verdict->faults;
      if (verdict->faults.empty()) entry["facts"] = facts_json(verdict->facts);
      if (verdict->report)
        if (const auto report = parse_json(verdict->report->json(), {.max_bytes = 64u << 20}))
          entry["report"] = *report;
    }
    if (input->faults.empty()) entry["job_file"] = write_job_file(input->spec);
    data.push_back(std::move(entry));
  }
  if (globals.json) print(canonical({{"data", data}, {"has_more", false}}) + "\n");
  return good ? kDone : kUsage;
}

// --- check-data ---

int check_data(const Globals& globals) {
  std::string text;
  char piece[65536];
  std::size_t size = 0;
  while (text.size() < (1u << 20) && (size = std::fread(piece, 1, sizeof piece, stdin)) > 0)
    text.append(piece, size);
  if (std::ferror(stdin) != 0) return tell(globals, kUsage, "can't read standard input");
  const auto spec = decode_spec(text);
  if (!spec) return tell(globals, kUsage, spec.error().message);
  const DataVerdict verdict = check_job_data(*spec);
  const Json answer = verdict.faults.empty() ? Json{{"facts", facts_json(verdict.facts)}}
                                             : Json{{"faults", verdict.faults}};
  print(canonical(answer) + "\n");
  return kDone;
}

// --- tokenize ---

struct TokenizeOptions {
  std::string model{};
  int max_length = 0;
};

int tokenize(const Globals& globals, const TokenizeOptions& options) {
  const auto tokenizer = Tokenizer::load(options.model);
  if (!tokenizer) return tell(globals, kUsage, tokenizer.error().message);
  // Whole lines, in pieces of about 1 MiB: a file of any size streams through.
  constexpr std::size_t kPiece = 1 << 20, kMaxLine = 16 << 20;
  std::string waiting, piece(kPiece, '\0'), out;
  std::int64_t lines = 0;  // done so far
  while (true) {
    const std::size_t size = std::fread(piece.data(), 1, piece.size(), stdin);
    if (std::ferror(stdin) != 0)
      return tell(globals, kUsage,
                  fmt::format("can't read standard input: {}", std::strerror(errno)));
    waiting.append(piece, 0, size);
    const bool end = size == 0;
    const auto last = end ? waiting.size() : waiting.rfind('\n') + 1;  // npos + 1 == 0
    if (last > 0) {
      out.clear();
      std::vector<std::int64_t> broken;
      const auto done = tokenize_lines(*tokenizer, std::string_view(waiting).substr(0, last),
                                       options.max_length, globals.json, out, broken);
      print(out);
      for (const std::int64_t line : broken)
        std::fprintf(stderr, "ymir: note: line %lld is not UTF-8, read with U+FFFD\n",
                     static_cast<long long>(lines + line));
      lines +=
          std::count(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(last), '\n');
      if (!done) return tell(globals, kUsage, done.error().message);
      waiting.erase(0, last);
    }
    if (end) return kDone;
    if (waiting.size() > kMaxLine)
      return tell(globals, kUsage,
                  fmt::format("line {} is longer than {} MiB, the most that is read", lines + 1,
                              kMaxLine >> 20));
  }
}

}  // namespace

Run validate_verb(CLI::App& command) {
  auto options = std::make_shared<ValidateOptions>();
  command.add_option("files", options->files, "job files; - is stdin")->required();
  command.add_flag("--no-data", options->no_data, "only the job file itself");
  return [options](const Globals& globals) { return validate(globals, *options); };
}

Run check_data_verb(CLI::App&) { return check_data; }

Run tokenize_verb(CLI::App& command) {
  auto options = std::make_shared<TokenizeOptions>();
  command.add_option("--model", options->model, "model folder")->required();
  command.add_option("--max-length", options->max_length, "cut to so many ids; 0: never")
      ->check(CLI::Range(0, 1 << 20));
  return [options](const Globals& globals) { return tokenize(globals, *options); };
}

Run merge_verb(CLI::App& command) {
  auto request = std::make_shared<MergeRequest>();
  command.add_option("--model", request->model, "model folder")->required();
  command.add_option("--adapter", request->adapter, "adapter folder, PEFT's form")->required();
  command.add_option("--out", request->output, "folder to write")->required();
  return [request](const Globals& globals) {
    const auto merged = merge_adapter(*request);
    if (!merged) return tell(globals, merged.error());
    print(globals.json
              ? canonical(Json{{"out", request->output}, {"changed", merged->num_changed}}) + "\n"
              : fmt::format("{}: {} tensors changed\n", request->output, merged->num_changed));
    return static_cast<int>(kDone);
  };
}

}  // namespace ymir::cli
