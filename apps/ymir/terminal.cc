#include "apps/ymir/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ymir/base/text.h"

namespace ymir::cli {
namespace {

const char* code_of(Color color) {
  switch (color) {
    case Color::kNone:
      return "";
    case Color::kBold:
      return "1";
    case Color::kDim:
      return "2";
    case Color::kRed:
      return "31";
    case Color::kGreen:
      return "32";
    case Color::kYellow:
      return "33";
    case Color::kBlue:
      return "34";
    case Color::kMagenta:
      return "35";
    case Color::kCyan:
      return "36";
  }
  return "";
}

std::string blanks(int count) {
  return std::string(static_cast<std::size_t>(std::max(count, 0)), ' ');
}

}  // namespace

Terminal Terminal::detect(bool no_color) {
  Terminal terminal;
  terminal.is_terminal = isatty(STDOUT_FILENO) == 1;
  terminal.stderr_is_terminal = isatty(STDERR_FILENO) == 1;
  const char* off = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  terminal.colors = terminal.is_terminal && !no_color && (off == nullptr || *off == '\0') &&
                    (kind == nullptr || std::string_view(kind) != "dumb");
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.width = size.ws_col;
  return terminal;
}

std::string Terminal::paint(std::string_view text, Color color) const {
  if (!colors || color == Color::kNone) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(color), text);
}

namespace {
int g_output_error = 0;  // errno of the first write that failed
}

void print(std::string_view text) {
  if (g_output_error != 0) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    g_output_error = errno == 0 ? EIO : errno;
}

bool output_gone() { return g_output_error != 0; }

std::string output_fault() {
  return g_output_error == 0 || g_output_error == EPIPE ? "" : std::strerror(g_output_error);
}

std::vector<int> Table::widths(int limit) const {
  std::vector<int> wide(columns_.size(), 0);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    wide[c] = display_width(columns_[c].title);
    for (const auto& row : rows_)
      if (c < row.size()) wide[c] = std::max(wide[c], display_width(row[c].text));
  }
  if (limit <= 0) return wide;
  int total = 2 * (static_cast<int>(columns_.size()) - 1);
  for (const int w : wide) total += w;
  // The widest flexible column gives way first, down to 6 columns.
  while (total > limit) {
    std::size_t widest = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (columns_[c].flexible && wide[c] > 6 &&
          (widest == columns_.size() || wide[c] > wide[widest]))
        widest = c;
    if (widest == columns_.size()) break;
    --wide[widest];
    --total;
  }
  return wide;
}

std::string Table::lines(const Terminal& terminal) const {
  const auto wide = widths(terminal.is_terminal ? terminal.width : 0);
  std::string out;
  const auto line = [&](const std::vector<Cell>& cells) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const Cell cell = c < cells.size() ? cells[c] : Cell{};
      const std::string shown = fit(cell.text, wide[c]);
      const std::string pad = blanks(wide[c] - display_width(shown));
      if (c > 0) text += "  ";
      text += columns_[c].right ? pad + terminal.paint(shown, cell.color)
                                : terminal.paint(shown, cell.color) + pad;
    }
    const auto end = text.find_last_not_of(' ');
    out += text.substr(0, end == std::string::npos ? 0 : end + 1) + "\n";
  };
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.push_back({column.title, Color::kBold});
  line(titles);
  for (const auto& row : rows_) line(row);
  return out;
}

std::string progress_bar(double fraction, int width) {
  const double part = std::clamp(std::isfinite(fraction) ? fraction : 0.0, 0.0, 1.0);
  const int full = static_cast<int>(std::lround(part * width));
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(width - full), '-') + "]";
}

void ProgressLine::show(double fraction, std::string_view text) {
  if (quiet_) return;
  const auto now = Clock::now();
  const auto gap = terminal_.stderr_is_terminal ? std::chrono::milliseconds(100)
                                                : std::chrono::milliseconds(5000);
  if (drawn_ && now - last_ < gap) return;
  last_ = now;
  drawn_ = true;
  const std::string bar = fraction >= 0 ? progress_bar(fraction, 24) + " " : "";
  if (terminal_.stderr_is_terminal)
    std::fprintf(stderr, "\r\x1b[K%s", fit(bar + std::string(text), terminal_.width - 1).c_str());
  else
    std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
  std::fflush(stderr);
}

void ProgressLine::finish() {
  if (drawn_ && terminal_.stderr_is_terminal) std::fputc('\n', stderr);
  drawn_ = false;
}

}  // namespace ymir::cli
