#include "ymir/store/artifacts.h"

#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "ymir/base/file.h"

namespace ymir {
namespace {

// statfs(2) types of file systems whose files lie on another machine.
constexpr std::array<unsigned long, 6> kRemote{
    0x6969,      // NFS
    0x517B,      // SMB
    0xFF534D42,  // CIFS
    0xFE534D42,  // SMB2
    0x0BD00BD0,  // Lustre
    0x00C36400,  // Ceph
};

}  // namespace

Result<StateFolder> StateFolder::open(const std::string& root) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(root, error).lexically_normal().string();
  if (error || absolute.empty())
    return Error{ErrorCode::kInvalidArgument, root + ": not a folder name"};
  StateFolder folder(absolute.size() > 1 && absolute.back() == '/'
                         ? absolute.substr(0, absolute.size() - 1)
                         : absolute);
  YMIR_TRY(make_folders(folder.artifacts()));
  YMIR_TRY(make_folders(folder.run()));
  struct statfs info{};
  if (::statfs(folder.root().c_str(), &info) != 0)
    return file_error(folder.root(), "cannot stat", errno);
  for (const unsigned long type : kRemote)
    if (static_cast<unsigned long>(info.f_type) == type)
      return Error{ErrorCode::kInvalidArgument,
                   folder.root() + ": lies on a network file system, the log needs a local one"};
  return folder;
}

Result<DiskSpace> disk_space(const std::string& path) {
  struct statvfs info{};
  if (::statvfs(path.c_str(), &info) != 0) return file_error(path, "cannot stat", errno);
  return DiskSpace{.free = std::uint64_t{info.f_bavail} * info.f_frsize,
                   .total = std::uint64_t{info.f_blocks} * info.f_frsize};
}

}  // namespace ymir
