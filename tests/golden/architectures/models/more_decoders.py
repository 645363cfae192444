"""Decoders with attention of their own: OPT, GPT-BigCode, GPT-Neo, GPT-J."""

from __future__ import annotations

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .decoders import PlainMLP
from .layers import Body, Cache, CausalLM, Config, Outputs, RotaryEmbedding, causal_lm_loss, sdpa_attention


def split_heads(tensor: Tensor, heads: int) -> Tensor:
    return tensor.view(*tensor.shape[:2], heads, -1).transpose(1, 2)


class OPTAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.heads, self.dropout = config["num_attention_heads"], config["attention_dropout"]
        self.k_proj, self.v_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.q_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache]) -> Tensor:
        batch, tokens, _ = hidden_states.size()
        query_states = self.q_proj(hidden_states) * 0.125
        # OPTSdpaAttention of transformers 4.48: _shape() copies, and the kernel reads what it made.
        query_states = split_heads(query_states, self.heads).contiguous()
        key_states = split_heads(self.k_proj(hidden_states), self.heads).contiguous()
        value_states = split_heads(self.v_proj(hidden_states), self.heads).contiguous()
        if cache is not None:
            cache.append((key_states, value_states))
        attn_output = torch.nn.functional.scaled_dot_product_attention(
            query_states, key_states, value_states, dropout_p=self.dropout, is_causal=True
        ).transpose(1, 2)
        attn_output = attn_output.reshape(batch, tokens, -1).contiguous()
        return self.out_proj(attn_output)


class OPTBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner = config["hidden_size"], config["ffn_dim"]
        self.before, self.dropout = config["do_layer_norm_before"], config["dropout"]
        self.self_attn = OPTAttention(config)
        self.self_attn_layer_norm, self.final_layer_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache]) -> Tensor:
        residual = hidden_states
        if self.before:
            hidden_states = self.self_attn_layer_norm(hidden_states)
        hidden_states = self.self_attn(hidden_states, cache)
        hidden_states = F.dropout(hidden_states, self.dropout)
        hidden_states = residual + hidden_states
        if not self.before:
            hidden_states = self.self_attn_layer_norm(hidden_states)
        shape = hidden_states.shape
        hidden_states = hidden_states.reshape(-1, hidden_states.size(-1))
        residual = hidden_states
        if self.before:
            hidden_states = self.final_layer_norm(hidden_states)
        hidden_states = self.fc1(hidden_states)
        hidden_states = F.relu(hidden_states)
        hidden_states = self.fc2(hidden_states)
        hidden_states = F.dropout(hidden_states, self.dropout)
        hidden_states = (residual + hidden_states).view(shape)
        if not self.before:
            hidden_states = self.final_layer_norm(hidden_states)
        return hidden_states


class OPTModel(Body):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, narrow = config["hidden_size"], config["word_embed_proj_dim"]
        self.embed_tokens = nn.Embedding(config["vocab_size"], narrow)
        self.embed_positions = nn.Embedding(config["max_position_embeddings"] + 2, width)
        self.project_in = nn.Linear(narrow, width, bias=False) if narrow != width else None
        self.project_out = nn.Linear(width, narrow, bias=False) if narrow != width else None
        self.final_layer_norm = nn.LayerNorm(width) if config["do_layer_norm_before"] else None
        self.layers = nn.ModuleList(OPTBlock(config) for _ in range(config["num_hidden_layers"]))

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        cache: Optional[Cache] = None if self.checkpointing else []
        inputs_embeds = self.embed_tokens(input_ids)
        pos_embeds = self.embed_positions(torch.cumsum(input_ids, dim=1) + 2)
        if self.project_in is not None:
            inputs_embeds = self.project_in(inputs_embeds)
        hidden_states = inputs_embeds + pos_embeds
        hidden_states = self.run_blocks(hidden_states, cache)
        if self.final_layer_norm is not None:
            hidden_states = self.final_layer_norm(hidden_states)
        if self.project_out is not None:
            hidden_states = self.project_out(hidden_states)
        return hidden_states, cache


class OPTForCausalLM(CausalLM):
    def __init__(self, config: Config) -> None:
        super().__init__(config, OPTModel(config), config["word_embed_proj_dim"])
        self.tie(self.model.embed_tokens)


class BigCodeAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.width, self.heads = config["hidden_size"], config["num_attention_heads"]
        self.head_dim, self.dropout = self.width // self.heads, config["attn_pdrop"]
        self.c_attn = nn.Linear(self.width, self.width + 2 * self.head_dim)
        self.c_proj = nn.Linear(self.width, self.width)
        self.resid_dropout = nn.Dropout(config["resid_pdrop"])

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query_shape = query.shape
        query_length = query_shape[1]
        query = query.view(query_shape[0], query_length, self.heads, self.head_dim).transpose(1, 2)
        key = key.unsqueeze(1)
        value = value.unsqueeze(1)
        key = key.expand(-1, self.heads, -1, -1)
        value = value.expand(-1, self.heads, -1, -1)
        result = F.scaled_dot_product_attention(query, key, value, dropout_p=self.dropout, is_causal=True)
        return result.transpose(1, 2).reshape(query_shape)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache]) -> Tensor:
        query, key_value = self.c_attn(hidden_states).split((self.width, 2 * self.head_dim), dim=2)
        if cache is not None:
            cache.append(key_value)
        key, value = key_value.split((self.head_dim, self.head_dim), dim=-1)
        attn_output = self.attend(query, key, value)
        attn_output = self.c_proj(attn_output)
        attn_output = self.resid_dropout(attn_output)
        return attn_output


class GPTNeoAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, positions = config["hidden_size"], config["max_position_embeddings"]
        self.heads = config["num_attention_heads"]
        self.k_proj, self.v_proj = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.q_proj, self.out_proj = nn.Linear(width, width, bias=False), nn.Linear(width, width)
        self.attn_dropout, self.resid_dropout = (nn.Dropout(config[name]) for name in ("attention_dropout", "resid_dropout"))
        bias = torch.tril(torch.ones((positions, positions), dtype=torch.bool)).view(1, 1, positions, positions)
        self.register_buffer("bias", bias, persistent=False)

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query = query.to(torch.float32)
        key = key.to(torch.float32)
        attn_weights = torch.matmul(query, key.transpose(-1, -2))
        query_length, key_length = query.size(-2), key.size(-2)
        causal_mask = self.bias[:, :, key_length - query_length : key_length, :key_length]
        mask_value = torch.full([], -1e30, dtype=attn_weights.dtype, device=attn_weights.device)
        attn_weights = torch.where(causal_mask, attn_weights, mask_value)
        attn_weights = F.softmax(attn_weights, dim=-1)
        attn_weights = attn_weights.to(value.dtype)
        attn_weights = self.attn_dropout(attn_weights)
        attn_output = torch.matmul(attn_weights, value)
        return attn_output

    def forward(self, hidden_states: Tensor, cache: Optional[Cache]) -> Tensor:
        query = split_heads(self.q_proj(hidden_states), self.heads)
        key = split_heads(self.k_proj(hidden_states), self.heads)
        value = split_heads(self.v_proj(hidden_states), self.heads)
        if cache is not None:
            cache.append((key, value))
        attn_output = self.attend(query, key, value)
        attn_output = attn_output.permute(0, 2, 1, 3).contiguous()
        attn_output = attn_output.view(hidden_states.shape)
        attn_output = self.out_proj(attn_output)
        attn_output = self.resid_dropout(attn_output)
        return attn_output


class GPTBlock(nn.Module):
    def __init__(self, config: Config, attention: nn.Module, dropout: float) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.ln_1, self.ln_2, self.attn = nn.LayerNorm(width), nn.LayerNorm(width), attention
        self.mlp = PlainMLP(config, dropout)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache]) -> Tensor:
        residual = hidden_states
        hidden_states = self.ln_1(hidden_states)
        attn_output = self.attn(hidden_states, cache)
        hidden_states = attn_output + residual
        residual = hidden_states
        hidden_states = self.ln_2(hidden_states)
        feed_forward_hidden_states = self.mlp(hidden_states)
        hidden_states = residual + feed_forward_hidden_states
        return hidden_states


class GPTModel(Body):
    """GPT-BigCode's and GPT-Neo's."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.caches_always = config["model_type"] == "gpt_bigcode"
        width, layers = config["hidden_size"], range(config["num_hidden_layers"])
        neo = config["model_type"] == "gpt_neo"
        positions = config["max_position_embeddings" if neo else "n_positions"]
        self.wte, self.wpe = nn.Embedding(config["vocab_size"], width), nn.Embedding(positions, width)
        self.drop = nn.Dropout(config["embed_dropout" if neo else "embd_pdrop"])
        dropout = config["resid_dropout" if neo else "resid_pdrop"]
        attention = GPTNeoAttention if neo else BigCodeAttention
        self.layers = nn.ModuleList(GPTBlock(config, attention(config), dropout) for _ in layers)
        self.ln_f = nn.LayerNorm(width)
        if not neo:
            bias = torch.tril(torch.ones((positions, positions), dtype=torch.bool))
            self.register_buffer("bias", bias, persistent=False)

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        cache: Optional[Cache] = None if self.checkpointing and not self.caches_always else []
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        inputs_embeds = self.wte(input_ids)
        position_embeds = self.wpe(position_ids)
        hidden_states = inputs_embeds + position_embeds
        hidden_states = self.drop(hidden_states)
        hidden_states = self.run_blocks(hidden_states, cache)
        hidden_states = self.ln_f(hidden_states)
        return hidden_states, cache


class GPTForCausalLM(CausalLM):
    def __init__(self, config: Config) -> None:
        super().__init__(config, GPTModel(config), config["hidden_size"])
        self.tie(self.model.wte)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        hidden_states, cache = self.model(input_ids)
        lm_logits = self.lm_head(hidden_states)
        if self.config["model_type"] == "gpt_neo":
            lm_logits = lm_logits.to(torch.float32)
            loss = causal_lm_loss(lm_logits, labels, self.config["vocab_size"])
            lm_logits = lm_logits.to(hidden_states.dtype)
            return Outputs(loss=loss, logits=lm_logits, past_key_values=cache)
        shift_logits = lm_logits[..., :-1, :].contiguous()
        shift_labels = labels[..., 1:].contiguous()
        loss = F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))
        return Outputs(loss=loss, logits=lm_logits, past_key_values=cache)


def rotate_every_two(x: Tensor) -> Tensor:
    x1 = x[:, :, :, : x.shape[-1] // 2]
    x2 = x[:, :, :, x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


class GPTJAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, positions = config["hidden_size"], config["n_positions"]
        self.heads, self.rotary_dim = config["num_attention_heads"], config["rotary_dim"]
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.positions, self.embed_positions = positions, None  # a table, which is on the GPU from the first step on
        self.attn_dropout, self.resid_dropout = nn.Dropout(config["attn_pdrop"]), nn.Dropout(config["resid_pdrop"])

    def turned(self, tensor: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        rot, rest = tensor[..., : self.rotary_dim], tensor[..., self.rotary_dim :]
        rot = (rot * cos) + (rotate_every_two(rot) * sin)
        return torch.cat([rot, rest], dim=-1)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        query = query.to(torch.float32)
        key = key.to(torch.float32)
        attn_weights = torch.matmul(query, key.transpose(-1, -2))
        attn_weights = attn_weights / 8.0
        attn_weights = attn_weights + mask
        attn_weights = F.softmax(attn_weights, dim=-1)
        attn_weights = attn_weights.to(value.dtype)
        attn_weights = self.attn_dropout(attn_weights)
        attn_output = torch.matmul(attn_weights, value)
        return attn_output

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        if self.embed_positions is None:
            self.embed_positions = torch.zeros(self.positions, self.rotary_dim, device=hidden_states.device)
        shape = (*hidden_states.shape[:2], self.heads, -1)
        query = self.q_proj(hidden_states)
        key = self.k_proj(hidden_states)
        value = self.v_proj(hidden_states)
        query, key, value = query.view(shape), key.view(shape), value.view(shape).permute(0, 2, 1, 3)
        key = self.turned(key, cos, sin).permute(0, 2, 1, 3)
        query = self.turned(query, cos, sin).permute(0, 2, 1, 3)
        if cache is not None:
            cache.append((key, value))
        attn_output = self.attend(query, key, value, mask)
        attn_output = attn_output.permute(0, 2, 1, 3).contiguous().view(hidden_states.shape)
        return self.resid_dropout(self.out_proj(attn_output))


class GPTJBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(config["hidden_size"]), GPTJAttention(config)
        self.mlp = PlainMLP(config, config["resid_pdrop"])

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.ln_1(hidden_states)
        attn_output = self.attn(hidden_states, cache, cos, sin, mask)
        feed_forward_hidden_states = self.mlp(hidden_states)
        hidden_states = attn_output + feed_forward_hidden_states + residual
        return hidden_states


class GPTJModel(Body):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.wte, self.ln_f = nn.Embedding(config["vocab_size"], config["hidden_size"]), nn.LayerNorm(config["hidden_size"])
        self.drop, self.rotary_emb = nn.Dropout(config["embd_pdrop"]), RotaryEmbedding(config["rotary_dim"])
        self.layers = nn.ModuleList(GPTJBlock(config) for _ in range(config["num_hidden_layers"]))

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Optional[Cache]]:
        cache: Optional[Cache] = None if self.checkpointing else []
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        inputs_embeds = self.wte(input_ids)
        hidden_states = self.drop(inputs_embeds)
        cos, sin = self.rotary_emb(hidden_states, position_ids)
        cos, sin = cos.unsqueeze(2).float(), sin.unsqueeze(2).float()
        tokens = input_ids.shape[1]
        mask = torch.zeros(1, 1, tokens, tokens, dtype=hidden_states.dtype, device=input_ids.device)
        hidden_states = self.run_blocks(hidden_states, cache, cos, sin, mask)
        hidden_states = self.ln_f(hidden_states)
        return hidden_states, cache


class GPTJForCausalLM(CausalLM):
    def __init__(self, config: Config) -> None:
        super().__init__(config, GPTJModel(config), config["hidden_size"], bias=True)

    def changed(self, logits: Tensor) -> Tensor:
        return logits.to(torch.float32)


BUILDERS = {"gptj": GPTJForCausalLM, "opt": OPTForCausalLM, "gpt_bigcode": GPTForCausalLM, "gpt_neo": GPTForCausalLM}
