#!/usr/bin/env python3
"""Writes stories_values.json: what transformers computes with stories260K, a real pretrained LLaMA
of 260,000 parameters: 60 tokens of greedy text, their loss, the last logits. Run by hand:

    make_stories_reference.py stories260K.bin > stories_values.json

The file is llama2.c's (7 int32, then f32 tensors). Its rotary positions turn neighbouring pairs,
transformers' turn halves: rows of the query and key matrices change places. Needs torch 2.15.0,
transformers 5.24.0.
"""
import json
import struct
import sys

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM


def main(path):
    data = open(path, "rb").read()
    dim, hidden, layers, heads, kv_heads, vocabulary, positions = struct.unpack("7i", data[:28])
    floats = np.frombuffer(data[28:], dtype=np.float32)
    at, width = 0, dim // heads

    def take(*shape):
        nonlocal at
        count = int(np.prod(shape))
        at += count
        return torch.tensor(floats[at - count:at].reshape(shape))

    def halves(w, n):
        return w.reshape(n, width // 2, 2, -1).transpose(1, 2).reshape(w.shape)

    words, norm1 = take(vocabulary, dim), take(layers, dim)
    q, k = take(layers, dim, dim), take(layers, kv_heads * width, dim)
    v, o = take(layers, kv_heads * width, dim), take(layers, dim, dim)
    norm2, gate = take(layers, dim), take(layers, hidden, dim)
    down, up, last = take(layers, dim, hidden), take(layers, hidden, dim), take(dim)
    state = {"model.embed_tokens.weight": words, "model.norm.weight": last, "lm_head.weight": words}
    for i in range(layers):
        for name, tensor in {
                "input_layernorm": norm1[i], "post_attention_layernorm": norm2[i],
                "self_attn.q_proj": halves(q[i], heads), "self_attn.k_proj": halves(k[i], kv_heads),
                "self_attn.v_proj": v[i], "self_attn.o_proj": o[i], "mlp.gate_proj": gate[i],
                "mlp.down_proj": down[i], "mlp.up_proj": up[i]}.items():
            state[f"model.layers.{i}.{name}.weight"] = tensor
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=vocabulary, hidden_size=dim, intermediate_size=hidden, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=kv_heads, max_position_embeddings=positions,
        rms_norm_eps=1e-5, tie_word_embeddings=True)).eval()
    model.load_state_dict(state)
    ids = [1]
    with torch.no_grad():
        for _ in range(60):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
        logits = model(torch.tensor([ids])).logits[0]
    loss = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:])).item()
    print(json.dumps({"ids": ids, "loss": loss, "last": [round(x, 6) for x in logits[-1].tolist()]},
                     separators=(",", ":")))


if __name__ == "__main__":
    main(*sys.argv[1:])
