// What people see: tables that fit the terminal, colours and progress lines. All of it only where
// stdout (stderr for progress) is a terminal and NO_COLOR is unset; else plain, stable columns that
// are never cut. One thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace ymir::cli {

enum class Color { kNone, kBold, kDim, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };

class Terminal {
 public:
  // Asks the system about stdout and stderr.
  static Terminal detect(bool no_color);

  bool is_terminal = false;         // stdout
  bool stderr_is_terminal = false;  //
  bool colors = false;
  int width = 100;  // columns of stdout

  std::string paint(std::string_view text, Color color) const;
};

// Writes to stdout. After the first failure it drops what comes: the verb goes on to its own end
// and exit code, since a training must not die with the pipe that shows it.
void print(std::string_view text);
// True once a write has failed: what only prints, and would go on for ever, should end.
bool output_gone();
// Why output is incomplete ("No space left on device"); empty when all was written, or when the
// reader went away of its own will.
std::string output_fault();

struct Column {
  std::string title{};
  bool right = false;     // numbers
  bool flexible = false;  // may be cut when the terminal is narrow
};
struct Cell {
  std::string text{};
  Color color = Color::kNone;
};

// Rows as lines, two blanks between columns. `width` 0: nothing is cut.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void row(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  std::string lines(const Terminal& terminal) const;

 private:
  std::vector<int> widths(int limit) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_{};
};

// One line on stderr that is drawn again and again on a terminal, and every few seconds elsewhere.
class ProgressLine {
 public:
  ProgressLine(const Terminal& terminal, bool quiet) : terminal_(terminal), quiet_(quiet) {}
  ~ProgressLine() { finish(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // fraction < 0: unknown, no bar.
  void show(double fraction, std::string_view text);
  void finish();  // leaves the last line and goes to the next

 private:
  using Clock = std::chrono::steady_clock;
  const Terminal& terminal_;
  bool quiet_ = false;
  bool drawn_ = false;
  Clock::time_point last_{};
};

// "[#####-----]" with `width` cells; fraction is clamped to 0..1.
std::string progress_bar(double fraction, int width);

}  // namespace ymir::cli
