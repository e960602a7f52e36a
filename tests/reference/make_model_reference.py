#!/usr/bin/env python3
"""Writes model_values.json: what transformers computes with small random models of every family,
for ymir/tune/model_reference_test.cc: logits, losses and the gradients of every weight (autograd).
Also what PEFT computes with adapters on them. Run by hand:

    make_model_reference.py [EXPORTED] > model_values.json

EXPORTED: the folder that `YMIR_EXPORT_TO=DIR ymir_tune_test --gtest_filter=*AdaptersOfPeft*` leaves:
the same adapters, read and written again by Ymir. PEFT loads them, and the largest difference of
its logits is told on standard error. Needs torch 2.15.0, transformers 5.24.0, peft 0.21.2.

No weight is stored: both sides make them from uniform(tensor, k), tensor counted in the order of
names, k the position in the flat tensor. Of a gradient are stored its norm and its product with
uniform(tensor + 500, k), which sees every element's place.
"""
import json
import math
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers as hf
from safetensors import safe_open
from safetensors.torch import load_file, save_file

CLASSES = 3
EXPORTED = sys.argv[1] if len(sys.argv) > 1 else None


def uniform(tensor, count):
    """24-bit uniform numbers in [-1, 1) from a mixing of (tensor, position)."""
    with np.errstate(over="ignore"):
        z = (np.uint64(tensor) * np.uint64(1 << 32) + np.arange(1, count + 1, dtype=np.uint64))
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0


def values(name, tensor, shape):
    """Norm gains near 1, vectors small, embeddings and matrices so that activations are about 1."""
    count = math.prod(shape)
    u = uniform(tensor, count)
    last = name.split(".")[-2] if "." in name else name
    if len(shape) == 1 and name.endswith("weight"):
        u = 1 + 0.2 * u
    elif "lora_magnitude" in name:
        u = 1 + 0.2 * u
    elif len(shape) == 1:
        u = 0.1 * u
    elif "embed" in last or "embed" in name:
        u = 0.8 * u
    else:
        u = 0.25 * u
    return torch.tensor(u, dtype=torch.float64).to(torch.float32).reshape(shape)


def by_formula(shapes):
    return {name: values(name, i, shapes[name]) for i, name in enumerate(sorted(shapes))}


def tensors_of(folder):
    with safe_open(f"{folder}/model.safetensors", "pt") as f:
        return {name: list(f.get_slice(name).get_shape()) for name in f.keys()}


def summary(tensors):
    out = {}
    for i, name in enumerate(sorted(tensors)):
        g = tensors[name].double().flatten()
        along = torch.tensor(uniform(i + 500, g.numel()))
        out[name] = [g.norm().item(), torch.dot(g, along).item()]
    return out


def built(make, folder, dtype=None):
    """A model of this kind with the formula's weights (rounded to dtype), its files in `folder`."""
    make().save_pretrained(folder)
    shapes = tensors_of(folder)
    tensors = by_formula(shapes)
    if dtype is not None:
        tensors = {name: t.to(dtype).float() for name, t in tensors.items()}
    save_file(tensors, f"{folder}/model.safetensors", {"format": "pt"})
    model = type(make()).from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    return model.train(), shapes


def rows_for(lengths, vocabulary, seed):
    rng = np.random.default_rng(seed)
    return [rng.integers(5, vocabulary, n).tolist() for n in lengths]


def forward(model, case, row):
    """Logits of one row alone: no padding anywhere."""
    if "images" in case:
        shape = (1, 3, 16, 16)
        return model(pixel_values=torch.tensor(
            uniform(2000 + row, math.prod(shape)), dtype=torch.float64).float().reshape(shape)).logits
    return model(input_ids=torch.tensor([case["ids"][row]])).logits


def losses(model, case):
    """Sum over rows (classes), or over learnt tokens, and the number of either."""
    total, count = 0.0, 0
    for row in range(case["rows"]):
        logits = forward(model, case, row)
        if case["task"] == "lm":
            ids = torch.tensor(case["ids"][row])
            labels = ids.clone()
            labels[:case["prompt"][row]] = -100
            total = total + torch.nn.functional.cross_entropy(
                logits[0, :-1].float(), labels[1:], ignore_index=-100, reduction="sum")
            count += int((labels[1:] != -100).sum())
        else:
            total = total + torch.nn.functional.cross_entropy(
                logits.float(), torch.tensor([row % CLASSES]), reduction="sum")
            count += 1
    return total, count


def all_logits(model, case):
    model.eval()
    with torch.no_grad():
        out = [forward(model, case, row)[0].flatten().tolist() for row in range(case["rows"])]
    model.train()
    return [[round(v, 7) for v in row] for row in out]


def file_names(model, gradients, folder):
    """Gradients under the names that files have: saved as if they were the weights."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(gradients[name] if gradients[name] is not None else 0 * parameter)
    model.save_pretrained(folder)
    return load_file(f"{folder}/model.safetensors")


def case_of(name, make, ids=None, task="classify", prompt=None, dtype=None, adapters=()):
    with tempfile.TemporaryDirectory() as folder:
        model, shapes = built(make, folder, dtype)
        case = {"name": name, "task": task, "config": json.loads(
            pathlib.Path(folder, "config.json").read_text()), "tensors": shapes}
        if dtype is not None:
            case["dtype"] = str(dtype).split(".")[-1]
        if ids is None:
            case["images"], case["rows"] = True, 3
        else:
            case["ids"], case["rows"] = ids, len(ids)
        if prompt:
            case["prompt"] = prompt
        case["logits"] = all_logits(model, case)
        loss, count = losses(model, case)
        (loss / count).backward()
        case["loss"] = loss.item() / count
        grads = {n: p.grad for n, p in model.named_parameters()}
        case["gradients"] = summary(file_names(model, grads, folder + "/g"))
        case["adapters"] = [adapted(make, case, i, dict(a), dtype) for i, a in enumerate(adapters)]
    case["config"] = {k: v for k, v in case["config"].items()
                      if k not in ("transformers_version", "architectures", "id2label", "label2id")}
    return case


def adapted(make, case, number, settings, dtype):
    """The same with an adapter of PEFT's whose tensors come from the formula."""
    import peft
    kind = settings.pop("peft")
    with tempfile.TemporaryDirectory() as folder:
        model, _ = built(make, folder, dtype)
        task = {"classify": "SEQ_CLS", "lm": "CAUSAL_LM", "image": None}[case["task"]]
        if kind == "lora":
            config = peft.LoraConfig(lora_dropout=0.0, task_type=task, **settings)
        else:
            config = peft.PrefixTuningConfig(task_type=task, **settings)
        wrapped = peft.get_peft_model(model, config)
        wrapped.save_pretrained(folder + "/a")
        path = f"{folder}/a/adapter_model.safetensors"
        shapes = {n: list(t.shape) for n, t in load_file(path).items()}
        save_file(by_formula(shapes), path, {"format": "pt"})
        if kind == "prefix":  # PEFT does not go on training one that it has loaded
            with torch.no_grad():
                wrapped.prompt_encoder["default"].embedding.weight.copy_(
                    load_file(path)["prompt_embeddings"])
        else:
            model, _ = built(make, folder, dtype)
            wrapped = peft.PeftModel.from_pretrained(model, folder + "/a", is_trainable=True)
        wrapped.train()
        out = {"config": json.loads(pathlib.Path(folder, "a/adapter_config.json").read_text()),
               "tensors": shapes, "logits": all_logits(wrapped, case)}
        loss, count = losses(wrapped, case)
        (loss / count).backward()
        grads = {}
        for name, parameter in wrapped.named_parameters():
            if parameter.grad is None:
                continue
            plain = name.replace(".default", "").replace("modules_to_save.", "")
            if "prompt_encoder" in name:
                plain = "prompt_embeddings"
            plain = plain.replace("lora_magnitude_vector.weight", "lora_magnitude_vector")
            grads[plain] = parameter.grad
        assert sorted(grads) == sorted(shapes), (sorted(grads), sorted(shapes))
        out["gradients"] = summary(grads)
        out["config"] = {k: v for k, v in out["config"].items() if v not in (None, False, {}, [])}
    if EXPORTED:
        with tempfile.TemporaryDirectory() as folder:
            model, _ = built(make, folder, dtype)
            theirs = peft.PeftModel.from_pretrained(model, f"{EXPORTED}/{case['name']}-{number}")
            worst = max(abs(a - b) for x, y in zip(all_logits(theirs, case), out["logits"])
                        for a, b in zip(x, y))
            print(f"{case['name']}-{number}: {worst:.2e}", file=sys.stderr)
    return out


def cases():
    text = rows_for([5, 9, 1, 14], 60, 1)
    small = dict(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                 intermediate_size=48, num_labels=CLASSES, hidden_dropout_prob=0.0,
                 attention_probs_dropout_prob=0.0)
    llama = dict(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, intermediate_size=48, num_labels=CLASSES)
    sites = ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "gate_proj", "down_proj"]
    bert_sites = ["query", "key", "value", "attention.output.dense", "intermediate.dense"]
    yield case_of("bert", lambda: hf.BertForSequenceClassification(hf.BertConfig(
        max_position_embeddings=20, **small)), text, adapters=[
            {"peft": "lora", "r": 4, "lora_alpha": 8, "target_modules": bert_sites,
             "modules_to_save": ["classifier"], "use_rslora": True,
             "rank_pattern": {"value": 2}, "alpha_pattern": {"key": 4}},
            {"peft": "lora", "r": 4, "lora_alpha": 8, "target_modules": bert_sites,
             "modules_to_save": ["classifier"], "use_dora": True}])
    yield case_of("roberta", lambda: hf.RobertaForSequenceClassification(hf.RobertaConfig(
        max_position_embeddings=22, type_vocab_size=1, hidden_act="gelu", layer_norm_eps=1e-5, **small)),
        text, dtype=torch.float16, adapters=[
            {"peft": "lora", "r": 4, "lora_alpha": 8, "target_modules": ["query", "value"]}])
    yield case_of("distilbert", lambda: hf.DistilBertForSequenceClassification(hf.DistilBertConfig(
        vocab_size=60, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=20,
        dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0, num_labels=CLASSES,
        activation="gelu")), text, adapters=[
            {"peft": "lora", "r": 4, "lora_alpha": 8, "target_modules": ["q_lin", "v_lin", "lin2"],
             "modules_to_save": ["classifier", "pre_classifier"]}])
    yield case_of("llama_classify", lambda: hf.LlamaForSequenceClassification(hf.LlamaConfig(
        head_dim=16, **llama)), text, dtype=torch.bfloat16, adapters=[
            {"peft": "lora", "r": 4, "lora_alpha": 8, "target_modules": sites,
             "use_dora": True}])
    longer = rows_for([12, 30, 3], 60, 2)
    prompt = [4, 0, 1]
    yield case_of("llama_linear_tied", lambda: hf.LlamaForCausalLM(hf.LlamaConfig(
        tie_word_embeddings=True, attention_bias=True, mlp_bias=True, rope_parameters={
            "rope_type": "linear", "factor": 2.5, "rope_theta": 500.0}, **llama)),
        longer, "lm", prompt, adapters=[
            {"peft": "lora", "r": 4, "lora_alpha": 8, "target_modules": sites},
            {"peft": "prefix", "num_virtual_tokens": 3}])
    yield case_of("llama_dynamic", lambda: hf.LlamaForCausalLM(hf.LlamaConfig(
        max_position_embeddings=16, rope_parameters={
            "rope_type": "dynamic", "factor": 3.0, "rope_theta": 500.0}, **llama)),
        longer, "lm", prompt)
    yield case_of("llama_llama3", lambda: hf.LlamaForCausalLM(hf.LlamaConfig(
        max_position_embeddings=64, hidden_act="gelu_pytorch_tanh", rope_parameters={
            "rope_type": "llama3", "factor": 4.0, "rope_theta": 500.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 16}, **llama)),
        longer, "lm", prompt)
    yarn = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 500.0, "original_max_position_embeddings": 16}
    yield case_of("llama_yarn", lambda: hf.LlamaForCausalLM(hf.LlamaConfig(
        max_position_embeddings=64, rope_parameters=dict(yarn, beta_fast=4.0), **llama)), longer, "lm", prompt)
    yield case_of("llama_yarn_scaled", lambda: hf.LlamaForCausalLM(hf.LlamaConfig(
        max_position_embeddings=64, rope_parameters=dict(
            yarn, beta_slow=0.5, beta_fast=2.0, mscale=2.0, mscale_all_dim=0.7, truncate=False), **llama)),
        longer, "lm", prompt)
    yield case_of("llama_longrope", lambda: hf.LlamaForCausalLM(hf.LlamaConfig(
        max_position_embeddings=64, rope_parameters={
            "rope_type": "longrope", "rope_theta": 500.0, "original_max_position_embeddings": 16,
            "short_factor": [1.0, 1.05, 1.2, 1.4], "long_factor": [1.0, 1.5, 2.5, 4.0]}, **llama)),
        longer, "lm", prompt)
    vit = {k: v for k, v in small.items() if k != "vocab_size"}
    yield case_of("vit", lambda: hf.ViTForImageClassification(hf.ViTConfig(
        image_size=16, patch_size=4, **vit)), None, "image", adapters=[
            {"peft": "lora", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"],
             "modules_to_save": ["classifier"]}])


def main():
    torch.set_num_threads(1)
    out = {"versions": {"transformers": hf.__version__, "torch": torch.__version__},
           "cases": list(cases())}
    print(json.dumps(out, separators=(",", ":")))


if __name__ == "__main__":
    main()
