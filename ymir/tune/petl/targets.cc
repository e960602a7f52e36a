#include "ymir/tune/petl/targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

namespace ymir {
namespace {

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

}  // namespace

bool matches_module(std::string_view module, std::string_view target) {
  return module == target || (module.size() > target.size() && module.ends_with(target) &&
                              module[module.size() - target.size() - 1] == '.');
}

std::vector<std::string> target_modules(const Family& family, const MethodSpec& method) {
  constexpr std::array<std::pair<std::string_view, Site>, 3> kRoles = {
      {{"query", Site::kQuery}, {"key", Site::kKey}, {"value", Site::kValue}}};
  std::vector<std::string> targets;
  for (const std::string& target : method.targets) {
    targets.push_back(target);
    for (const auto& [role, site] : kRoles) {
      const std::string_view module = family.sites[static_cast<std::size_t>(site)];
      if (target == role) targets.back() = module.substr(module.find_last_of('.') + 1);
    }
  }
  if (targets.empty()) targets.assign(family.default_targets.begin(), family.default_targets.end());
  return targets;
}

Result<> check_targets(const Family& family, int layers, const std::vector<std::string>& targets) {
  for (const std::string& target : targets) {
    if (family.head == HeadKind::kPooler && matches_module("pooler.dense", target))
      return refused(fmt::format(
          "method.targets: \"{}\" also means pooler.dense, which takes no adapter; name "
          "attention.output.dense, intermediate.dense or output.dense",
          target));
    bool found = false;
    std::vector<std::string_view> sites;
    for (const Site site : kAllSites) {
      if (!family.has(site)) continue;
      sites.push_back(family.sites[static_cast<std::size_t>(site)]);
      for (int layer = 0; layer < layers; ++layer)
        found = found || matches_module(family.module(layer, site), target);
    }
    if (!found)
      return refused(fmt::format("method.targets: no module matches \"{}\" (sites: {})", target,
                                 fmt::join(sites, ", ")));
  }
  return Ok{};
}

}  // namespace ymir
