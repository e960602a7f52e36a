// The join file: how an agent learns where to dial and proves that it was asked for. Mode 0600,
// owned by the agent's user, in a folder nobody else can enter; the secret in it is good for one
// admission. Also the random secrets themselves. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "ymir/base/result.h"
#include "ymir/core/job.h"

namespace ymir {

struct JoinFile {
  std::string address{};  // "unix:/path/of/socket"
  PlaceId place{};
  std::string secret{};
};

// 256 bit of the system's randomness, as hex.
std::string new_secret();
// In constant time for equal lengths.
bool same_secret(std::string_view a, std::string_view b);

// Writes with mode 0600; replaces an older file.
Result<> write_join_file(const std::string& path, const JoinFile& join);
// Refuses a file or folder that others may read or that somebody else owns (kPermission).
Result<JoinFile> read_join_file(const std::string& path);

// The path of a "unix:" address. kInvalidArgument: another scheme, or longer than a socket may be.
Result<std::string> unix_path(const std::string& address);

}  // namespace ymir
