#include "ymir/tune/data/row_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/leftovers.h"
#include "ymir/base/prune.h"

namespace ymir {
namespace {

constexpr std::string_view kMagic = "YMIRDATA";
constexpr int kVersion = 2;
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMaxHeader = 256u << 20;
constexpr std::uint64_t kCacheCap = std::uint64_t{4} << 30;
static_assert(sizeof(RowFacts) == 40, "RowFacts is written as it lies in memory");

Error bad(const char* what) { return {ErrorCode::kCorruption, what}; }

std::size_t rounded(std::size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

template <class T>
void append_array(std::string& out, const std::vector<T>& values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  out.resize(rounded(out.size()), '\0');
}

std::string serialise(const RowContent& content) {
  const std::int32_t highest =
      content.ids.empty() ? 0 : *std::max_element(content.ids.begin(), content.ids.end());
  const bool narrow = highest <= std::numeric_limits<std::uint16_t>::max();
  const Json header = {{"version", kVersion},          {"rows", content.facts.size()},
                       {"tokens", content.ids.size()}, {"pixels", content.pixels.size()},
                       {"id_bytes", narrow ? 2 : 4},   {"type_ids", !content.type_ids.empty()},
                       {"highest_id", highest},        {"max_length", content.max_length},
                       {"labels", content.labels},     {"files", content.files},
                       {"notes", content.notes}};
  const std::string text = canonical(header);
  const std::uint64_t size = text.size();
  std::string out(kMagic);
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out += text;
  out.resize(rounded(out.size()), '\0');
  append_array(out, content.offsets);
  append_array(out, content.facts);
  if (narrow)
    append_array(out, std::vector<std::uint16_t>(content.ids.begin(), content.ids.end()));
  else
    append_array(out, content.ids);
  append_array(out, content.type_ids);
  append_array(out, content.pixels);
  return out;
}

// Takes arrays off the front of the bytes, each padded to the alignment.
class ArrayReader {
 public:
  explicit ArrayReader(std::span<const std::byte> rest) : rest_(rest) {}

  template <class T>
  bool take(std::size_t count, std::span<const T>& out) {
    if (count > rest_.size() / sizeof(T) || rounded(count * sizeof(T)) > rest_.size()) return false;
    out = {reinterpret_cast<const T*>(rest_.data()), count};
    rest_ = rest_.subspan(rounded(count * sizeof(T)));
    return true;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

Result<> RowStore::bind(std::span<const std::byte> bytes) {
  std::uint64_t header_size = 0;
  const std::size_t fixed = kMagic.size() + sizeof header_size;
  if (bytes.size() < fixed || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return bad("is no data file");
  std::memcpy(&header_size, bytes.data() + kMagic.size(), sizeof header_size);
  if (header_size > kMaxHeader || rounded(fixed + header_size) > bytes.size())
    return bad("has a header longer than itself");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + fixed, header_size);
  YMIR_TRY_ASSIGN(const Json header, parse_json(text, {.max_bytes = kMaxHeader, .max_depth = 4}));
  std::size_t rows = 0, tokens = 0, pixels = 0;
  std::int32_t highest = 0;
  bool narrow = false, typed = false;
  try {
    if (header.at("version") != kVersion) return bad("has another version");
    header.at("rows").get_to(rows);
    header.at("tokens").get_to(tokens);
    header.at("pixels").get_to(pixels);
    header.at("highest_id").get_to(highest);
    header.at("max_length").get_to(max_length_);
    header.at("labels").get_to(labels_);
    header.at("files").get_to(files_);
    header.at("notes").get_to(notes_);
    header.at("type_ids").get_to(typed);
    narrow = header.at("id_bytes") == 2;
  } catch (const Json::exception&) {
    return bad("has a header that lacks a field");
  }
  ArrayReader arrays(bytes.subspan(rounded(fixed + header_size)));
  if (rows > bytes.size() || !arrays.take(rows + 1, offsets_) || !arrays.take(rows, facts_) ||
      !(narrow ? arrays.take(tokens, narrow_ids_) : arrays.take(tokens, wide_ids_)) ||
      !arrays.take(typed ? tokens : 0, type_ids_) || !arrays.take(pixels, pixels_) ||
      !arrays.at_end())
    return bad("is shorter or longer than its header says");
  if (offsets_.front() != 0 || offsets_.back() != tokens + pixels || (tokens > 0 && pixels > 0) ||
      !std::is_sorted(offsets_.begin(), offsets_.end()))
    return bad("has offsets out of order");
  const auto beyond = [highest](auto id) { return id < 0 || id > highest; };
  const bool facts_fit = std::ranges::all_of(facts_, [this](const RowFacts& facts) {
    return facts.label >= 0 &&
           static_cast<std::size_t>(facts.label) < std::max<std::size_t>(labels_.size(), 1) &&
           facts.file < files_.size();
  });
  if (!facts_fit || std::ranges::any_of(narrow_ids_, beyond) ||
      std::ranges::any_of(wide_ids_, beyond))
    return bad("has ids out of range");
  return Ok{};
}

RowStore RowStore::make(const RowContent& content) {
  const std::string bytes = serialise(content);
  RowStore store;
  store.memory_ = std::make_unique<std::vector<std::uint64_t>>(
      (bytes.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  std::memcpy(store.memory_->data(), bytes.data(), bytes.size());
  const auto bound = store.bind(std::as_bytes(std::span(*store.memory_)).first(bytes.size()));
  YMIR_CHECK(static_cast<bool>(bound), bound.error().message);
  return store;
}

Result<RowStore> RowStore::open_or_build(const std::string& cache, const std::string& key,
                                         const std::function<Result<RowContent>()>& build) {
  if (cache.empty()) {
    YMIR_TRY_ASSIGN(const RowContent content, build());
    return make(content);
  }
  const std::string folder = cache + "/data", path = folder + "/" + key + ".ymirdata";
  const auto open = [&path]() -> Result<RowStore> {
    RowStore store;
    YMIR_TRY_ASSIGN(store.file_, MappedFile::open(path));
    YMIR_TRY(store.bind(store.file_.bytes()));
    mark_used(path);
    return store;
  };
  if (auto store = open()) return store;
  YMIR_TRY(make_folders(folder));
  {
    YMIR_TRY_ASSIGN(const FileLock lock, FileLock::acquire(path + ".lock"));
    if (auto store = open()) return store;  // another process was faster
    remove_leftovers(folder, key + ".ymirdata");
    YMIR_TRY_ASSIGN(const RowContent content, build());
    YMIR_TRY(write_file(path, serialise(content)));
  }
  prune_folder(folder, ".ymirdata", kCacheCap);
  return open();
}

std::size_t RowStore::length(std::size_t row) const {
  return static_cast<std::size_t>(offsets_[row + 1] - offsets_[row]);
}

std::span<const std::uint8_t> RowStore::pixels(std::size_t row) const {
  if (pixels_.empty()) return {};
  return pixels_.subspan(offsets_[row], offsets_[row + 1] - offsets_[row]);
}

void RowStore::append_ids(std::size_t row, std::vector<std::int32_t>& out) const {
  const auto begin = offsets_[row], count = offsets_[row + 1] - begin;
  if (wide_ids_.empty())
    for (const std::uint16_t id : narrow_ids_.subspan(begin, count)) out.push_back(id);
  else
    for (const std::int32_t id : wide_ids_.subspan(begin, count)) out.push_back(id);
}

void RowStore::append_type_ids(std::size_t row, std::vector<std::int32_t>& out) const {
  const auto begin = offsets_[row], count = offsets_[row + 1] - begin;
  if (type_ids_.empty())
    out.insert(out.end(), count, 0);
  else
    for (const std::uint8_t type : type_ids_.subspan(begin, count)) out.push_back(type);
}

void RowStore::name_files(const std::vector<std::string>& files) {
  YMIR_CHECK(files.size() == files_.size(), "another number of files");
  files_ = files;
}

std::string RowStore::place(std::size_t row) const {
  const RowFacts& facts = facts_[row];
  return facts.line == 0 ? files_[facts.file]
                         : fmt::format("{}:{}", files_[facts.file], facts.line);
}

}  // namespace ymir
