#include "ymir/optimize/command.h"

#include <chrono>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "ymir/base/file.h"
#include "ymir/optimize/check.h"
#include "ymir/optimize/generate.h"
#include "ymir/optimize/instance_json.h"

namespace ymir {
namespace {

CommandOutput refused(const Error& error) { return {2, "", error.message + "\n"}; }

Result<std::string> read_input(const std::string& path) {
  if (path != "-") return read_file(path, kMaxInstanceBytes);
  std::string text;
  char block[1 << 16];
  while (std::cin.read(block, sizeof block) || std::cin.gcount() > 0) {
    text.append(block, static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() > kMaxInstanceBytes) {
      return Error{ErrorCode::kExhausted, "standard input is too large"};
    }
  }
  return text;
}

Result<NamedRound> read_instance(const std::string& path) {
  YMIR_TRY_ASSIGN(const std::string text, read_input(path));
  auto round = parse_instance(text);
  if (!round) return annotate(std::move(round).error(), path);
  return round;
}

CommandOutput generate(const std::string& text) {
  const auto options = parse_generate_options(text);
  if (!options) return refused(options.error());
  NamedRound round;
  Generator(*options).build(round.problem);
  for (int j = 1; j <= options->jobs; ++j) round.ids.push_back(fmt::format("j{}", j));
  if (const auto valid = round.problem.validate(); !valid) return refused(valid.error());
  return {0, write_instance(round), ""};
}

// The same value must come out of an independent proof: by the certificate of the answer where it
// reaches, else by that of a solve made here (checked in turn).
CommandOutput check(const NamedRound& round, const std::string& path) {
  const auto text = read_input(path);
  if (!text) return refused(text.error());
  auto parsed = parse_solution(round, *text);
  if (!parsed) return refused(annotate(std::move(parsed).error(), path));
  const auto found = [&](const std::string& fault) {
    return CommandOutput{1, "", fmt::format("{}: {}\n", path, fault)};
  };
  Solution& given = parsed->solution;
  const Solution own = Planner().solve(round.problem);
  if (const auto sound = check_solution(round.problem, own); !sound) {
    return {1, "", "bug in the solver: " + sound.error().message + "\n"};
  }
  const bool has_proof = parsed->has_certificate;
  if (!has_proof) given.certificate = own.certificate;
  if (const auto sound = check_solution(round.problem, given); !sound) {
    return found(sound.error().message);
  }
  const bool by_prices = given.certificate.root_bound < given.certificate.scale * (given.value + 1);
  if (given.value > own.bound || given.bound < own.value) {
    return found(fmt::format("a plan worth {} exists", own.value));
  }
  const std::string how = by_prices                      ? "proved by prices"
                          : own.proof == Proof::kOptimal ? "proved by prices and enumeration"
                                                         : "not proved here";
  return {0,
          fmt::format("ok: {} candidates chosen, value {}, bound {}, {} ({}{})\n",
                      given.chosen.size(), given.value, given.bound, proof_name(given.proof), how,
                      has_proof ? "" : "; no certificate given"),
          ""};
}

std::string table(const NamedRound& round, const Solution& solution, std::int64_t microseconds) {
  std::string out;
  for (const Choice& choice : solution.chosen) {
    std::string jobs = round.ids[choice.first];
    if (choice.second != kNoJob) jobs += " + " + round.ids[choice.second];
    fmt::format_to(std::back_inserter(out), "{:<24} {:<12} {:>4} GPU{} of type {}  {:>12}\n", jobs,
                   mode_name(choice.option.mode), choice.option.gpus,
                   choice.option.gpus == 1 ? " " : "s", choice.option.type, choice.option.utility);
  }
  fmt::format_to(std::back_inserter(out), "value {}, bound {}, {}, {}.{:03} ms\n", solution.value,
                 solution.bound, proof_name(solution.proof), microseconds / 1000,
                 microseconds % 1000);
  return out;
}

}  // namespace

CommandOutput run_optimize_command(const OptimizeCommand& command) {
  if (!command.generate.empty()) return generate(command.generate);
  Limits limits;
  limits.relative_gap = command.relative_gap;
  if (const auto valid = limits.validate(); !valid) return refused(valid.error());
  const auto round = read_instance(command.instance);
  if (!round) return refused(round.error());
  if (!command.check_plan.empty()) return check(*round, command.check_plan);

  const auto start = std::chrono::steady_clock::now();
  const Solution solution = Planner().solve(round->problem, limits);
  const std::int64_t microseconds = std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::steady_clock::now() - start)
                                        .count();
  if (const auto sound = check_solution(round->problem, solution); !sound) {
    return {1, "", "bug in the solver: " + sound.error().message + "\n"};
  }
  if (!command.certificate.empty()) {
    const auto written =
        write_file(command.certificate, write_certificate(*round, solution.certificate));
    if (!written) return refused(written.error());
  }
  return {0,
          command.json ? write_solution(*round, solution, microseconds)
                       : table(*round, solution, microseconds),
          ""};
}

}  // namespace ymir
