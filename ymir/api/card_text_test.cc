#include "ymir/api/card_text.h"

#include <gtest/gtest.h>

namespace ymir {
namespace {

TEST(Card, SaysEveryNumberWithItsIntervalAndWhatBecameOfIt) {
  JobView job;
  job.id = JobId{7};
  job.spec.name = "tweets";
  Card card;
  card.speedup = {0.9, 1.4, 2.1};
  card.helps = 0.8;
  card.explores = true;
  card.similarity_name = "probe";
  const TransferSettled settled{.actual = 0.8,
                                .range = {0.6, 0.8, 1.1},
                                .censored = true,
                                .baseline = "predicted",
                                .kept = false};

  const std::string before =
      describe_card(job, {Mode::kTemporal, JobId{7}, JobId{3}, 1, 0.5}, card, nullptr);
  const std::string after =
      describe_card(job, {Mode::kTemporal, JobId{7}, JobId{3}, 1, 0.5}, card, &settled);
  const std::string alone = describe_card(job, {Mode::kNormal, JobId{7}, {}, 2, 1}, card, nullptr);

  EXPECT_NE(before.find("after j3, from 0.5 of its adapter, 1 GPU"), std::string::npos);
  EXPECT_NE(before.find("1.40 (0.90 .. 2.10)"), std::string::npos);
  EXPECT_NE(before.find("exploration budget"), std::string::npos);
  EXPECT_NE(before.find("not yet"), std::string::npos);
  EXPECT_NE(after.find("at most 0.80 (0.60 .. 1.10) against the predicted baseline, split"),
            std::string::npos);
  EXPECT_EQ(alone.find("gain"), std::string::npos);
}

}  // namespace
}  // namespace ymir
