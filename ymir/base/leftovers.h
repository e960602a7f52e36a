// Leftovers: what a writer that was killed, or ran out of space, could not remove itself.
#pragma once

#include <string>
#include <string_view>

namespace ymir {

// Removes the entries of the folder that begin with `stem` and hold ".tmp", as AtomicFile and
// the writers of folders call what is not complete. Only where no other writer of these names is at
// work: under their lock, or in a folder with one writer. Any thread.
void remove_leftovers(const std::string& folder, std::string_view stem);

}  // namespace ymir
