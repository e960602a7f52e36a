#include "ymir/tune/petl/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ymir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Targets, MeanTheFamilysOwnModules) {
  MethodSpec method;
  method.targets = {"query", "value"};

  EXPECT_THAT(target_modules(family_of("llama"), method), ElementsAre("q_proj", "v_proj"));
  EXPECT_THAT(target_modules(family_of("bert"), method), ElementsAre("query", "value"));
}

TEST(Targets, AModuleThatTheModelLacksIsToldWithThoseThatItHas) {
  const Result<> unknown = check_targets(family_of("bert"), 2, {"query", "qery"});
  const Result<> beyond = check_targets(family_of("bert"), 2, {"layer.2.attention.self.query"});
  const Result<> pooler = check_targets(family_of("bert"), 2, {"dense"});

  ASSERT_FALSE(unknown || beyond || pooler);
  EXPECT_EQ(unknown.error().message,
            "method.targets: no module matches \"qery\" (sites: attention.self.query, "
            "attention.self.key, attention.self.value, attention.output.dense, "
            "intermediate.dense, output.dense)");
  EXPECT_THAT(beyond.error().message, HasSubstr("layer.2.attention.self.query"));
  EXPECT_THAT(pooler.error().message, HasSubstr("also means pooler.dense"));
}

TEST(Targets, OfOneLayerAreFine) {
  EXPECT_TRUE(
      check_targets(family_of("bert"), 2, {"layer.1.attention.self.query", "output.dense"}));
}

}  // namespace
}  // namespace ymir
