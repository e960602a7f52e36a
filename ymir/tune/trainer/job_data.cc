#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ymir/tune/data/dataset.h"
#include "ymir/tune/trainer/job_data_torch.h"

namespace ymir {
namespace {

Batch batch_of(const RowSet& set, TaskKind kind, std::span<const std::uint32_t> rows) {
  Batch batch;
  std::vector<std::int32_t> trained;  // language model: one a token
  for (const std::uint32_t row : rows) {
    set.append_ids(row, batch.input.ids);
    if (kind == TaskKind::kLanguageModel) {
      set.append_trained(row, trained);
    } else {
      set.append_type_ids(row, batch.input.types);
    }
    batch.input.layout.offsets.push_back(static_cast<std::int64_t>(batch.input.ids.size()));
    batch.rows.push_back(row);
    if (kind == TaskKind::kClassify) {
      batch.classes.push_back(set.classes[row]);
    } else if (kind != TaskKind::kLanguageModel) {
      batch.values.push_back(static_cast<float>(set.score(row)));
    }
  }
  for (const std::int32_t label : trained) batch.learn.push_back(label != 0 ? 1 : 0);
  return batch;
}

}  // namespace

EvaluationRows evaluation_rows(const RowSet& set, TaskKind kind) {
  EvaluationRows out;
  for (std::size_t row = 0; row < set.size(); ++row)
    out.lengths.push_back(static_cast<std::int64_t>(set.length(row)));
  out.batch = [set, kind](std::span<const std::uint32_t> rows) {
    return batch_of(set, kind, rows);
  };
  return out;
}

Result<std::shared_ptr<const JobData>> load_job_data(const JobSpec& spec, const ModelFiles& model,
                                                     const Tokenizer& tokenizer,
                                                     const std::string& cache) {
  DataRequest request;
  request.data = spec.data;
  request.kind = spec.kind;
  request.labels = spec.labels;
  request.max_positions = model.config.max_positions;
  request.cache = cache;
  YMIR_TRY_ASSIGN(const TaskData data, load_task_data(request, tokenizer));
  if (!data.report.usable())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}", fmt::join(data.report.faults.messages(), "\n"))};
  auto out = std::make_shared<JobData>();
  out->train = evaluation_rows(data.train, spec.kind);
  out->validation = evaluation_rows(data.validation, spec.kind);
  out->test = evaluation_rows(data.test, spec.kind);
  out->labels = data.labels;
  out->outputs = spec.kind == TaskKind::kClassify ? static_cast<int>(data.labels.size()) : 1;
  out->key = data.hash;
  out->max_length = data.max_length;
  double tokens = 0;
  for (const std::int64_t length : out->train.lengths) tokens += static_cast<double>(length);
  out->mean_tokens = tokens / static_cast<double>(out->train.lengths.size());
  return std::shared_ptr<const JobData>(std::move(out));
}

}  // namespace ymir
