// ymir-worker: trains. Started by ymir-agent with a channel, or by `ymir train` and `ymir eval` for
// what they are asked. The only program that needs torch.
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/log.h"
#include "ymir/base/text.h"
#include "ymir/tune/worker.h"

namespace {

using namespace ymir;

volatile std::sig_atomic_t leaving = 0;

struct Arguments {
  int fd = -1;
  std::string cache{};
  std::string device = "cpu";
  int threads = 1;
  std::size_t frozen_outputs = 8192;
  std::vector<std::string> train{}, out{}, resume{};
  bool json = false;
  bool eval = false;
  std::string columns{}, metrics{};
  EvaluateRequest evaluate{};
};

// Memory stays with the process between steps; without this every step maps it anew. Only the
// second setting alone would make things slower, so a refusal is told.
void tune_allocator() {
  if (mallopt(M_MMAP_THRESHOLD, 1 << 30) == 0 || mallopt(M_TRIM_THRESHOLD, 1 << 30) == 0 ||
      mallopt(M_TOP_PAD, 64 << 20) == 0)
    log::warning("the allocator refused a setting; training may be slower");
  // Huge pages, where the system has them for programs that ask (`madvise`, its usual setting): a
  // step of MiniLM is 4% faster. Asked for before the heap is used, for address space, not memory.
  constexpr std::size_t kAhead = 768 << 20;  // below M_TRIM_THRESHOLD, or it would be given back
  constexpr std::uintptr_t kPage = 4096;
  const auto end_of_heap = [] { return reinterpret_cast<std::uintptr_t>(sbrk(0)); };
  const std::uintptr_t begin = (end_of_heap() + kPage - 1) / kPage * kPage;
  void* volatile ahead = std::malloc(kAhead);
  std::free(ahead);
  // Where it is refused there are small pages, as before.
  if (const std::uintptr_t end = end_of_heap(); end > begin)
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

int fail(const Error& error) {
  log::error("{}", error.message);
  return exit_code(error.code);
}

int train(Session& session, const Arguments& arguments) {
  LocalTraining training;
  training.num_threads = arguments.threads;
  training.resume = !arguments.resume.empty();
  for (const std::string& folder : arguments.resume) training.jobs.push_back({{}, folder});
  for (std::size_t i = 0; i < arguments.train.size(); ++i) {
    const auto text = read_file(arguments.train[i], 1 << 20);
    if (!text) return fail(text.error());
    auto spec = decode_spec(*text);
    if (!spec) return fail(annotate(spec.error(), arguments.train[i]));
    training.jobs.push_back({*std::move(spec), arguments.out[i]});
  }
  const auto finished = train_locally(
      session, training,
      [&](const Report& report) {
        if (!arguments.json) return;
        std::puts(encode_line(report).c_str());
        std::fflush(stdout);
      },
      [] { return leaving != 0; });
  if (!finished) return fail(finished.error());
  if (finished->size() < training.jobs.size()) return 130;  // interrupted, saved
  const bool good = std::ranges::all_of(
      *finished, [](const JobFinished& end) { return end.outcome == Outcome::kSucceeded; });
  return good ? 0 : 1;
}

int evaluate(Session& session, Arguments& arguments) {
  for (const std::string_view part : split(arguments.columns, ',')) {
    const std::size_t equals = part.find('=');
    if (part.empty()) continue;
    if (equals == std::string_view::npos) {
      log::error("--columns wants NAME=COLUMN,...: {}", part);
      return 2;
    }
    const std::string role(part.substr(0, equals)), name(part.substr(equals + 1));
    if (role == "label" && name.find('|') != name.npos) {
      for (const std::string_view label : split(name, '|'))
        arguments.evaluate.data.label_columns.emplace_back(label);
    } else {
      arguments.evaluate.data.columns[role] = name;
    }
  }
  for (const std::string_view metric : split(arguments.metrics, ',')) {
    if (metric.empty()) continue;
    arguments.evaluate.metrics.emplace_back(metric);
    if (needs_answers(arguments.evaluate.metrics.back())) continue;
    log::error(
        "--metrics names those of answers: bleu, rouge_1, rouge_2, rouge_l, exact_match, "
        "answer_f1; "
        "the others are always given: {}",
        metric);
    return 2;
  }
  const auto metrics = session.evaluate(arguments.evaluate);
  if (!metrics) return fail(metrics.error());
  std::puts(canonical(Json(*metrics)).c_str());
  return 0;
}

int run(Arguments& arguments) {
  SessionOptions options;
  options.num_threads = arguments.threads;
  options.cache = arguments.cache;
  options.device = arguments.device;
  options.frozen_outputs = arguments.frozen_outputs << 20;
  auto session = Session::open(options);
  if (!session) return fail(session.error());
  if (arguments.fd >= 0) {
    const auto served = serve_orders(arguments.fd, **session, [] { return leaving != 0; });
    return served ? 0 : fail(served.error());
  }
  if (arguments.eval) return evaluate(**session, arguments);
  return train(**session, arguments);
}

void add_options(CLI::App& app, Arguments& a) {
  app.add_option("--cache", a.cache, "folder for backbone images and tokenised data")->required();
  app.add_option("--threads", a.threads, "threads of matrix products")->check(CLI::Range(1, 1024));
  app.add_option("--device", a.device, "cpu or cuda")->capture_default_str();
  app.add_option(
         "--frozen-outputs", a.frozen_outputs,
         "MiB of the cache for outputs of frozen layers, kept between epochs and jobs; 0: none")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  auto* fd = app.add_option("--fd", a.fd, "serve orders over this descriptor");
  auto* train = app.add_option(
      "--train", a.train, "train the job of this file (resolved, JSON); several: in one batch");
  app.add_option("--out", a.out, "folder of the results, one a job")->needs(train);
  auto* resume = app.add_option("--resume", a.resume, "go on with the jobs of these folders");
  app.add_flag("--json", a.json, "a line a report on standard output");
  auto* eval = app.add_flag("--eval", a.eval, "evaluate an adapter, or a model with a head");
  app.add_option("--model", a.evaluate.model, "folder of the model")->needs(eval);
  app.add_option("--adapter", a.evaluate.adapter, "folder of the adapter")->needs(eval);
  app.add_option("--data", a.evaluate.data.validation, "files of rows")->needs(eval);
  app.add_option("--columns", a.columns, "text=NAME,label=NAME; label=A|B: a column a label")
      ->needs(eval);
  app.add_option("--format", a.evaluate.data.format, "as data.format of a job")->needs(eval);
  app.add_option("--template", a.evaluate.data.prompt_template, "as data.template")->needs(eval);
  app.add_option("--label-separator", a.evaluate.data.label_separator, "as data.label_separator")
      ->needs(eval);
  app.add_option("--metrics", a.metrics, "bleu,rouge_l,exact_match: of answers it writes")
      ->needs(eval);
  app.add_option("--answer-length", a.evaluate.answer_length, "tokens of an answer")
      ->check(CLI::Range(1, 4096))
      ->needs(eval);
  app.add_option("--max-length", a.evaluate.data.max_length, "tokens; 0: no row is cut")
      ->needs(eval);
  app.add_option("--predictions", a.evaluate.predictions, "file for a line a row")->needs(eval);
  for (auto* one : {fd, train, resume})
    for (auto* other : {fd, train, resume})
      if (one != other) one->excludes(other);
  eval->excludes(fd)->excludes(train)->excludes(resume);
}

}  // namespace

int main(int argc, char** argv) {
  log::start("ymir-worker", log::Level::kInfo);
  tune_allocator();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGUSR1, SIG_IGN);  // schedulers send it to every process of a step
  for (const int number : {SIGTERM, SIGINT}) std::signal(number, [](int) { leaving = 1; });
  Arguments arguments;
  CLI::App app("Ymir's worker: trains and evaluates on this machine.", "ymir-worker");
  app.set_version_flag("--version", YMIR_VERSION);
  add_options(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (arguments.out.size() != arguments.train.size() ||
      (arguments.fd < 0 && !arguments.eval && arguments.resume.empty() &&
       arguments.train.empty())) {
    log::error("nothing to do: give --fd, --train with an --out for each, --resume or --eval");
    return 2;
  }
  const int code = run(arguments);
  std::fflush(nullptr);
  ::_exit(code);  // the libraries' destructors take longer than an adapter swap
}
