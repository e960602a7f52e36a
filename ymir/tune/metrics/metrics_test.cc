// Metrics against the values that tests/reference/make_metric_values.py got from the usual
// packages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/tune/metrics/classification.h"
#include "ymir/tune/metrics/regression.h"
#include "ymir/tune/metrics/text_metrics.h"

namespace ymir {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const Json& reference() {
  static const Json values = *parse_json(
      *read_file(YMIR_SOURCE_DIR "/tests/reference/metric_values.json"), {.max_bytes = 64u << 20});
  return values;
}

double number(const Json& value) { return value.get<double>(); }

TEST(ConfusionCounts, EqualScikitLearn) {
  for (const Json& one : reference()["classification"]) {
    ConfusionCounts counts(one["classes"].get<std::size_t>());
    for (std::size_t i = 0; i < one["actual"].size(); ++i)
      counts.add(one["actual"][i], one["predicted"][i]);

    EXPECT_NEAR(*counts.accuracy(), number(one["accuracy"]), 1e-12) << one;
    EXPECT_NEAR(*counts.f1(Average::kMacro), number(one["macro"]), 1e-12) << one;
    EXPECT_NEAR(*counts.f1(Average::kMicro), number(one["micro"]), 1e-12) << one;
    EXPECT_NEAR(*counts.f1(Average::kWeighted), number(one["weighted"]), 1e-12) << one;
    EXPECT_NEAR(*counts.f1_of(1), number(one["f1_of_1"]), 1e-12) << one;
    EXPECT_NEAR(*counts.precision_of(1), number(one["precision_of_1"]), 1e-12) << one;
    EXPECT_NEAR(*counts.recall_of(1), number(one["recall_of_1"]), 1e-12) << one;
    EXPECT_NEAR(*counts.matthews(), number(one["mcc"]), 1e-12) << one;
  }
}

TEST(ConfusionCounts, F1IsNotAnAverageOfRanks) {
  const Json& one = reference()["classification"][3];
  const auto classes = one["classes"].get<std::size_t>();
  ConfusionCounts whole(classes), first(classes), second(classes);
  for (std::size_t i = 0; i < one["actual"].size(); ++i) {
    whole.add(one["actual"][i], one["predicted"][i]);
    (i % 3 == 0 ? first : second).add(one["actual"][i], one["predicted"][i]);
  }

  second.merge(first);

  EXPECT_EQ(second.f1(Average::kMacro), whole.f1(Average::kMacro));
  EXPECT_EQ(second.matthews(), whole.matthews());
  EXPECT_EQ(second.rows(), whole.rows());
}

TEST(ConfusionCounts, NothingHasNoMetrics) {
  const ConfusionCounts counts(2);

  EXPECT_FALSE(counts.accuracy());
  EXPECT_FALSE(counts.f1(Average::kMacro));
  EXPECT_FALSE(counts.matthews());
}

TEST(MultiLabelCounts, EqualScikitLearn) {
  for (const Json& one : reference()["multi_label"]) {
    const std::size_t labels = one["actual"][0].size();
    MultiLabelCounts counts(labels);
    for (std::size_t i = 0; i < one["actual"].size(); ++i) {
      const auto actual = std::make_unique<bool[]>(labels),
                 predicted = std::make_unique<bool[]>(labels);
      for (std::size_t k = 0; k < labels; ++k) {
        actual[k] = one["actual"][i][k].get<bool>();
        predicted[k] = one["predicted"][i][k].get<bool>();
      }
      counts.add({actual.get(), labels}, {predicted.get(), labels});
    }

    EXPECT_NEAR(*counts.exact(), number(one["exact"]), 1e-12);
    EXPECT_NEAR(*counts.f1(Average::kMacro), number(one["macro"]), 1e-12);
    EXPECT_NEAR(*counts.f1(Average::kMicro), number(one["micro"]), 1e-12);
    EXPECT_NEAR(*counts.f1(Average::kWeighted), number(one["weighted"]), 1e-12);
  }
}

TEST(BestClass, IsTheFirstOfTheHighestAndNoneWithNaN) {
  const float tied[] = {0.5f, 2, 2}, broken[] = {1, std::numeric_limits<float>::quiet_NaN()};

  EXPECT_EQ(best_class(tied), 1);
  EXPECT_FALSE(best_class(broken));
}

TEST(Correlation, EqualsSciPyAlsoWithTies) {
  for (const Json& one : reference()["regression"]) {
    const auto x = one["x"].get<std::vector<double>>(), y = one["y"].get<std::vector<double>>();

    EXPECT_NEAR(*pearson(x, y), number(one["pearson"]), 1e-12);
    EXPECT_NEAR(*spearman(x, y), number(one["spearman"]), 1e-12);
    EXPECT_NEAR(*mean_squared_error(x, y) / number(one["mse"]), 1, 1e-12);
  }
}

TEST(Correlation, DoesNotDependOnTheOrderOfRows) {
  auto x = reference()["regression"][3]["x"].get<std::vector<double>>();
  auto y = reference()["regression"][3]["y"].get<std::vector<double>>();
  const auto before = pearson(x, y), rank_before = spearman(x, y);

  std::ranges::reverse(x);
  std::ranges::reverse(y);

  EXPECT_EQ(pearson(x, y), before);
  EXPECT_EQ(spearman(x, y), rank_before);
}

TEST(Correlation, OfAConstantOrOfNaNIsUndefined) {
  const std::vector<double> constant{1, 1, 1}, rising{1, 2, 3}, broken{1, kNaN, 3}, one{1};

  EXPECT_FALSE(pearson(constant, rising));
  EXPECT_FALSE(spearman(rising, constant));
  EXPECT_FALSE(pearson(rising, broken));
  EXPECT_FALSE(spearman(broken, rising));
  EXPECT_FALSE(mean_squared_error(broken, rising));
  EXPECT_FALSE(pearson(one, one));
}

TEST(ExactSum, EqualsTheExactlyRoundedSumInAnyOrder) {
  for (const Json& one : reference()["sums"]) {
    auto values = one[0].get<std::vector<double>>();
    ExactSum forward, backward, half, other;
    for (const double v : values) forward.add(v);
    std::ranges::reverse(values);
    for (const double v : values) backward.add(v);
    for (std::size_t i = 0; i < values.size(); ++i) (i % 2 == 0 ? half : other).add(values[i]);
    half.merge(other);

    EXPECT_EQ(forward.value(), number(one[1])) << one;
    EXPECT_EQ(backward.value(), number(one[1])) << one;
    EXPECT_EQ(half.value(), number(one[1])) << one;
  }
}

TEST(Perplexity, IsOfAllTokensNotAMeanOfBatches) {
  Perplexity whole, first, second;
  whole.add(std::log(2.0) * 10 + std::log(8.0) * 2, 12);
  first.add(std::log(2.0) * 10, 10);
  second.add(std::log(8.0) * 2, 2);

  first.merge(second);

  EXPECT_NEAR(*whole.value(), std::exp((10 * std::log(2.0) + 2 * std::log(8.0)) / 12), 1e-12);
  EXPECT_NEAR(*first.value(), *whole.value(), 1e-12);
}

TEST(Perplexity, OfNothingOrNaNIsUndefined) {
  Perplexity none, broken, huge;
  broken.add(kNaN, 3);
  huge.add(1e6, 1);

  EXPECT_FALSE(none.value());
  EXPECT_FALSE(broken.value());
  EXPECT_FALSE(huge.value());
  EXPECT_TRUE(huge.mean_nll());
}

TEST(Bleu, TokensAreThoseOfMteval) {
  for (const Json& one : reference()["tokens_13a"])
    EXPECT_EQ(join(tokens_13a(one[0].get<std::string>()), " "), one[1].get<std::string>()) << one;
}

TEST(Bleu, EqualsSacrebleu) {
  for (const Json& one : reference()["bleu"]) {
    Bleu bleu;
    for (std::size_t i = 0; i < one["hypotheses"].size(); ++i)
      bleu.add(one["hypotheses"][i].get<std::string>(),
               one["references"][i].get<std::vector<std::string>>());
    EXPECT_NEAR(*bleu.score(), number(one["score"]), 1e-9) << one;
  }
}

TEST(Bleu, OfPartsJoinedIsThatOfTheWhole) {
  const Json& one = reference()["bleu"][3];
  Bleu whole, first, second;
  for (std::size_t i = 0; i < one["hypotheses"].size(); ++i) {
    const auto references = one["references"][i].get<std::vector<std::string>>();
    whole.add(one["hypotheses"][i].get<std::string>(), references);
    (i % 2 == 0 ? first : second).add(one["hypotheses"][i].get<std::string>(), references);
  }

  second.merge(first);

  EXPECT_EQ(second.score(), whole.score());
  EXPECT_FALSE(Bleu().score());
}

TEST(Rouge, EqualsRougeScore) {
  Rouge all;
  double sum = 0;
  for (const Json& one : reference()["rouge"]) {
    const auto hypothesis = one["hypothesis"].get<std::string>();
    const auto wanted = one["reference"].get<std::string>();
    const RougeValues values = rouge_of(hypothesis, wanted);
    EXPECT_NEAR(values.rouge1, number(one["rouge1"]), 1e-12) << one;
    EXPECT_NEAR(values.rouge2, number(one["rouge2"]), 1e-12) << one;
    EXPECT_NEAR(values.rouge_l, number(one["rougeL"]), 1e-12) << one;
    all.add(hypothesis, std::vector{wanted});
    sum += values.rouge1;
  }
  EXPECT_NEAR(all.mean()->rouge1, sum / static_cast<double>(reference()["rouge"].size()), 1e-12);
}

TEST(Rouge, TakesTheReferenceThatFitsBest) {
  Rouge rouge;
  rouge.add("the cat", std::vector<std::string>{"a dog", "the cat"});

  EXPECT_EQ(rouge.mean()->rouge2, 1);
}

TEST(ExactMatch, NormalisesAndCountsAsSquad) {
  for (const Json& one : reference()["squad"]) {
    const auto hypothesis = one["hypothesis"].get<std::string>();
    EXPECT_EQ(normalized_answer(hypothesis), one["normalized"].get<std::string>()) << one;
    EXPECT_NEAR(answer_f1(hypothesis, one["reference"].get<std::string>()), number(one["f1"]),
                1e-12)
        << one;
  }
}

TEST(ExactMatch, AnyReferenceMayMatch) {
  ExactMatch match;
  match.add("The Cat!", std::vector<std::string>{"dog", "cat"});
  match.add("bird", std::vector<std::string>{"a dog"});

  EXPECT_EQ(match.exact(), 0.5);
  EXPECT_EQ(match.f1(), 0.5);
  EXPECT_FALSE(ExactMatch().exact());
}

}  // namespace
}  // namespace ymir
