#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/base/text.h"
#include "ymir/optimize/milp_oracle.h"

namespace ymir {
namespace {

// Runs a program without output; the CPU time of it and its children. -1: it failed. One that wants
// more than `most_seconds` of CPU time is killed; that is no failure.
double run_program(std::vector<std::string> words, int most_seconds = 3600) {
  words.insert(words.begin(), {"prlimit", "--cpu=" + std::to_string(most_seconds)});
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child) return -1;
  if (!WIFSIGNALED(status) && WEXITSTATUS(status) != 0) return -1;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::string highs_python() {
  const char* python = std::getenv("YMIR_HIGHS_PYTHON");
  return python == nullptr ? "" : python;
}

std::int64_t utility_of(const RoundProblem& problem, std::size_t column) {
  const std::size_t alone = problem.alone_candidates().size();
  return column < alone ? problem.alone_candidates()[column].utility
                        : problem.pair_candidates()[column - alone].utility;
}

// glp_write_mip: "s mip ROWS COLUMNS STATUS VALUE", then "j COLUMN VALUE" with columns from 1.
MilpAnswer read_glpk(const RoundProblem& problem, const std::string& path) {
  MilpAnswer answer;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, status;
    words >> kind;
    if (kind == "s") {
      words >> kind >> status >> status >> status;
      answer.solved = status == "o";
    } else if (kind == "j") {
      std::size_t column = 0;
      double value = 0;
      words >> column >> value;
      if (value > 0.5) answer.value += utility_of(problem, column - 1);
    }
  }
  return answer;
}

// The first line tells the status; then "INDEX NAME VALUE COST", name "c7", non-zero columns only.
MilpAnswer read_columns(const RoundProblem& problem, const std::string& path) {
  MilpAnswer answer;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  answer.solved = line.starts_with("Optimal");
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string index, name;
    double value = 0;
    words >> index >> name >> value;
    const auto column = name.starts_with("c") ? parse_int(name.substr(1)) : std::nullopt;
    if (column && value > 0.5) {
      answer.value += utility_of(problem, static_cast<std::size_t>(*column));
    }
  }
  return answer;
}

}  // namespace

const char* milp_name(Milp solver) {
  return solver == Milp::kGlpk ? "GLPK" : solver == Milp::kCbc ? "CBC" : "HiGHS";
}

bool have_milp(Milp solver) {
  switch (solver) {
    case Milp::kGlpk:
      return run_program({"glpsol", "--version"}) >= 0;
    case Milp::kCbc:
      return run_program({"cbc", "-quit"}) >= 0;
    case Milp::kHighs:
      return !highs_python().empty() && run_program({highs_python(), "-c", "import highspy"}) >= 0;
  }
  return false;
}

void write_mps(const RoundProblem& problem, const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  YMIR_CHECK(file != nullptr, path);
  const auto jobs = static_cast<std::size_t>(problem.num_jobs());
  const std::vector<Row> rows = problem.rows();
  fmt::print(file, "NAME round\nROWS\n N u\n");
  for (std::size_t r = 0; r < jobs + rows.size(); ++r) fmt::print(file, " L r{}\n", r);
  fmt::print(file, "COLUMNS\n M1 'MARKER' 'INTORG'\n");
  std::size_t column = 0;
  const auto write = [&](JobIndex i, JobIndex j, const KeptOption& c) {
    const SizeClass& size = problem.sizes()[c.size];
    fmt::print(file, " c{} u {} r{} 1\n", column, -c.utility, i);
    if (j != kNoJob) fmt::print(file, " c{} r{} 1\n", column, j);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::int64_t amount = 0;
      if (rows[r].extra < 0) {
        amount = rows[r].type == size.type && size.gpus >= rows[r].min_gpus ? size.gpus : 0;
      } else {
        for (const JobIndex job : {i, j == kNoJob ? i : j}) {
          for (const RowShare& share : problem.shares(job)) {
            if (share.row == rows[r].extra) amount += share.sixteenths * size.gpus;
          }
        }
      }
      if (amount > 0) fmt::print(file, " c{} r{} {}\n", column, jobs + r, amount);
    }
    ++column;
  };
  for (JobIndex j = 0; j < problem.num_jobs(); ++j) {
    for (const KeptOption& c : problem.alone(j)) write(j, kNoJob, c);
  }
  for (const PairEdge& pair : problem.pairs()) {
    for (const KeptOption& c : problem.together(pair)) write(pair.first, pair.second, c);
  }
  fmt::print(file, " M2 'MARKER' 'INTEND'\nRHS\n");
  for (std::size_t r = 0; r < jobs + rows.size(); ++r) {
    fmt::print(file, " b r{} {}\n", r, r < jobs ? 1 : rows[r - jobs].capacity);
  }
  fmt::print(file, "ENDATA\n");  // the rows of the jobs bound every column by 1
  std::fclose(file);
}

MilpAnswer solve_milp(Milp solver, const RoundProblem& problem, const std::string& folder,
                      int cpu_limit_s) {
  const std::string model = folder + "/model.mps", output = folder + "/answer.txt";
  write_mps(problem, model);
  std::remove(output.c_str());
  MilpAnswer answer;
  double solve = 0, read = 0;
  if (solver == Milp::kGlpk) {
    read = run_program({"glpsol", "--freemps", model, "--min", "--check"});
    solve = run_program({"glpsol", "--freemps", model, "--min", "--gomory", "--clique", "--cover",
                         "--mipgap", "0", "-w", output},
                        cpu_limit_s);
    answer = read_glpk(problem, output);
  } else if (solver == Milp::kCbc) {
    read = run_program({"cbc", model, "-quit"});
    solve = run_program({"cbc", model, "-ratioGap", "0", "-allowableGap", "0.999", "-solve",
                         "-solution", output, "-quit"},
                        cpu_limit_s);
    answer = read_columns(problem, output);
  } else {
    solve =
        run_program({highs_python(), YMIR_SOURCE_DIR "/bench/peers/highs_solve.py", model, output},
                    cpu_limit_s);
    answer = read_columns(problem, output);
    std::ifstream(output + ".time") >> solve;  // its own clock: the interpreter is not counted
  }
  answer.cpu_seconds = std::max(0.0, solve - std::max(0.0, read));
  if (problem.num_jobs() == 0) answer.solved = true;
  return answer;
}

}  // namespace ymir
