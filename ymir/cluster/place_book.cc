#include "ymir/cluster/place_book.h"

#include <utility>

#include "ymir/base/file.h"
#include "ymir/base/json.h"

namespace ymir {

Result<PlaceBook> PlaceBook::open(const std::string& path) {
  PlaceBook book;
  book.path_ = path;
  const auto text = read_file(path, 1 << 20);
  if (!text && text.error().code == ErrorCode::kNotFound) return book;
  if (!text) return text.error();
  auto json = parse_json(*text);
  if (!json) return annotate(json.error(), path);
  try {
    book.next_ = json->at("next").get<std::uint64_t>();
    for (const Json& place : json->at("places")) {
      Entry entry;
      entry.key_hash = place.at("key_hash").get<std::string>();
      entry.agent.pid = place.at("pid").get<pid_t>();
      entry.agent.started = place.at("started").get<std::string>();
      book.entries_[PlaceId{place.at("place").get<std::uint64_t>()}] = std::move(entry);
    }
  } catch (const Json::exception&) {
    return Error{ErrorCode::kCorruption, path + ": not a list of places"};
  }
  return book;
}

Result<> PlaceBook::save() const {
  Json places = Json::array();
  for (const auto& [place, entry] : entries_)
    places.push_back({{"place", place.value},
                      {"key_hash", entry.key_hash},
                      {"pid", entry.agent.pid},
                      {"started", entry.agent.started}});
  return write_file(path_, canonical({{"next", next_}, {"places", std::move(places)}, {"v", 1}}));
}

Result<PlaceId> PlaceBook::new_place() {
  const PlaceId place{next_++};
  YMIR_TRY(save());
  return place;
}

Result<> PlaceBook::set(PlaceId place, const Entry& entry) {
  entries_[place] = entry;
  return save();
}

Result<> PlaceBook::erase(PlaceId place) {
  if (entries_.erase(place) == 0) return Ok{};
  return save();
}

}  // namespace ymir
