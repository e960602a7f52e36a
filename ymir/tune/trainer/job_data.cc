#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ymir/tune/data/conversation.h"
#include "ymir/tune/data/dataset.h"
#include "ymir/tune/trainer/job_data_torch.h"

namespace ymir {
namespace {

// What the loss needs of a row.
void append_target(const RowSet& set, const RowForm& form, std::uint32_t row, Batch& batch) {
  switch (form.kind) {
    case TaskKind::kClassify:
      batch.classes.push_back(set.classes[row]);
      break;
    case TaskKind::kRegress:
      batch.values.push_back(static_cast<float>(set.score(row)));
      break;
    case TaskKind::kMultiLabel: {
      const std::size_t first = batch.values.size();
      batch.values.resize(first + static_cast<std::size_t>(form.outputs), 0.0f);
      for (const std::int32_t label : set.label_sets[row])
        batch.values[first + static_cast<std::size_t>(label)] = 1;
      break;
    }
    case TaskKind::kLanguageModel: {
      std::vector<std::int32_t> trained;
      set.append_trained(row, trained);
      for (const std::int32_t label : trained) batch.learn.push_back(label != 0 ? 1 : 0);
      break;
    }
  }
}

void append_text(const RowSet& set, const RowForm& form, std::uint32_t row, EncoderInput& input) {
  set.append_ids(row, input.ids);
  if (form.kind != TaskKind::kLanguageModel) set.append_type_ids(row, input.types);
  input.layout.offsets.push_back(static_cast<std::int64_t>(input.ids.size()));
}

at::Tensor pixels_of(const RowSet& set, const ImageProcessor& images,
                     std::span<const std::uint32_t> rows) {
  at::Tensor out =
      at::empty({static_cast<std::int64_t>(rows.size()), images.channels, images.size, images.size},
                at::kFloat);
  float* data = out.mutable_data_ptr<float>();
  for (std::size_t i = 0; i < rows.size(); ++i)
    images.apply(set.pixels(rows[i]), data + i * images.values());
  return out;
}

Batch batch_of(const RowSet& set, const RowForm& form, std::span<const std::uint32_t> rows) {
  Batch batch;
  for (const std::uint32_t row : rows) {
    if (form.images) {
      batch.input.layout.offsets.push_back(batch.input.layout.tokens() + set.image_tokens);
    } else {
      append_text(set, form, row, batch.input);
    }
    batch.rows.push_back(row);
    append_target(set, form, row, batch);
  }
  if (form.images) batch.input.pixels = pixels_of(set, *form.images, rows);
  return batch;
}

}  // namespace

EvaluationRows evaluation_rows(const RowSet& set, const RowForm& form) {
  EvaluationRows out;
  for (std::size_t row = 0; row < set.size(); ++row)
    out.lengths.push_back(static_cast<std::int64_t>(set.length(row)));
  out.batch = [set, form](std::span<const std::uint32_t> rows) {
    return batch_of(set, form, rows);
  };
  return out;
}

AnswerForm answer_form(const DataSpec& data, std::shared_ptr<const Tokenizer> tokenizer,
                       int max_positions) {
  AnswerForm form;
  form.tokenizer = std::move(tokenizer);
  form.max_positions = max_positions;
  if (!is_conversation_format(data.format)) return form;
  form.has_prompts = true;
  if (const auto how = template_of(data.prompt_template, data.format))
    form.stop = how->after_assistant;
  return form;
}

Result<std::shared_ptr<const JobData>> load_job_data(const JobSpec& spec, const ModelFiles& model,
                                                     std::shared_ptr<const Tokenizer> tokenizer,
                                                     const std::string& cache) {
  const DataRequest request = data_request(spec, model.config, cache);
  YMIR_TRY_ASSIGN(const TaskData data, load_task_data(request, tokenizer.get()));
  if (!data.report.usable())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}", fmt::join(data.report.faults.messages(), "\n"))};
  auto out = std::make_shared<JobData>();
  out->labels = data.labels;
  out->outputs = data.labels.empty() ? 1 : static_cast<int>(data.labels.size());
  RowForm form{spec.kind, out->outputs, {}};
  if (request.image) {
    YMIR_TRY_ASSIGN(form.images, read_image_processor(model.folder, model.config));
  }
  out->train = evaluation_rows(data.train, form);
  out->validation = evaluation_rows(data.validation, form);
  out->test = evaluation_rows(data.test, form);
  out->key = data.hash;
  out->max_length = data.max_length;
  if (spec.kind == TaskKind::kLanguageModel)
    out->answers = answer_form(spec.data, std::move(tokenizer), model.config.max_positions);
  double tokens = 0;
  for (const std::int64_t length : out->train.lengths) tokens += static_cast<double>(length);
  out->mean_tokens = tokens / static_cast<double>(out->train.lengths.size());
  return std::shared_ptr<const JobData>(std::move(out));
}

}  // namespace ymir
