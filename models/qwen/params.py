"""The name table of Qwen2 and Qwen3 checkpoints: one row per parameter, with its name in each file format."""

from __future__ import annotations

from models.assign import Rule

_HF, _GGUF = "model.layers.{}.", "blk.{}."

RULES = (
    Rule("embedding", "model.embed_tokens.weight", "token_embd.weight"),
    Rule("norm.weight", "model.norm.weight", "output_norm.weight"),
    Rule("head", "lm_head.weight", "output.weight"),
    *(
        Rule(f"layers.{{}}.{path}", f"{_HF}{hf}", f"{_GGUF}{gguf}", transposed=path.endswith("kernel"))
        for path, hf, gguf in (
            ("input_norm.weight", "input_layernorm.weight", "attn_norm.weight"),
            ("post_norm.weight", "post_attention_layernorm.weight", "ffn_norm.weight"),
            ("attention.q_proj.kernel", "self_attn.q_proj.weight", "attn_q.weight"),
            ("attention.q_proj.bias", "self_attn.q_proj.bias", "attn_q.bias"),
            ("attention.k_proj.kernel", "self_attn.k_proj.weight", "attn_k.weight"),
            ("attention.k_proj.bias", "self_attn.k_proj.bias", "attn_k.bias"),
            ("attention.v_proj.kernel", "self_attn.v_proj.weight", "attn_v.weight"),
            ("attention.v_proj.bias", "self_attn.v_proj.bias", "attn_v.bias"),
            ("attention.o_proj.kernel", "self_attn.o_proj.weight", "attn_output.weight"),
            ("attention.o_proj.bias", "self_attn.o_proj.bias", "attn_output.bias"),
            ("attention.q_norm.weight", "self_attn.q_norm.weight", "attn_q_norm.weight"),
            ("attention.k_norm.weight", "self_attn.k_norm.weight", "attn_k_norm.weight"),
            ("mlp.gate_proj.kernel", "mlp.gate_proj.weight", "ffn_gate.weight"),
            ("mlp.up_proj.kernel", "mlp.up_proj.weight", "ffn_up.weight"),
            ("mlp.down_proj.kernel", "mlp.down_proj.weight", "ffn_down.weight"),
        )
    ),
)

IGNORED = ("*rotary_emb.inv_freq",)  # a table that old checkpoints store; it follows from the config

TWINS = {"lm_head.weight": "model.embed_tokens.weight", "output.weight": "token_embd.weight"}  # if tied, may be stored
