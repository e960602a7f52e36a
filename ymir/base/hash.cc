#include "ymir/base/hash.h"

#include <openssl/evp.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "ymir/base/file.h"

namespace ymir {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  YMIR_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1, "no SHA-256");
}
Sha256::~Sha256() { EVP_MD_CTX_free(state_->context); }

void Sha256::update(std::string_view bytes) {
  EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  unsigned length = 0;
  EVP_DigestFinal_ex(state_->context, digest.data(), &length);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

Result<std::string> sha256_file(const std::string& path) {
  // A device or a pipe would never end, and opening a pipe would wait for its writer.
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return file_error(path, "cannot open", errno);
  if (!S_ISREG(info.st_mode))
    return Error{ErrorCode::kInvalidArgument, path + ": is not a regular file"};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) return file_error(path, "cannot open", errno);
  Sha256 hash;
  std::vector<char> buffer(1 << 20);
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get()))
    hash.update({buffer.data(), n});
  if (std::ferror(file.get())) return Error{ErrorCode::kCorruption, path + ": read failed"};
  return hash.hex();
}

}  // namespace ymir
