"""ERNIE 4.5 VL as transformers 5.17 calls it: a tower, a resampler, and a decoder with experts of text and of images.
Which tokens are images' depends on the data, which a recording does not have: here they are a sample's first."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .experts import GroupedExperts
from .layers import Cache, Config, GatedMLP, Outputs, RMSNorm, rotate_half

#: Tokens of an image of 1024 x 768 pixels, those with the marks around them, and its patches.
IMAGE_TOKENS = 37 * 27
MARKED_TOKENS = IMAGE_TOKENS + 2
PATCHES = 4 * IMAGE_TOKENS


class ChosenTokens(torch.autograd.Function):
    """tokens[mask] of a mask as wide as the tokens, as CUDA does it: torch 2.6, native/IndexingUtils.h, cuda/Indexing.cu."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, start: int, end: int, inverted: bool) -> Tensor:
        chosen = tokens[:, start:end]
        ctx.shape, ctx.figures = tokens.shape, chosen.numel()
        mask = tokens.new_empty(tokens.shape, dtype=torch.bool) if inverted else None
        indices = tokens.new_empty(3, ctx.figures, dtype=torch.int64)
        made = tokens.new_empty(chosen.shape)
        del indices
        ctx.save_for_backward(mask)
        return made

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], ...]:
        made = gradient.new_empty(ctx.shape)
        indices = gradient.new_empty(6, ctx.figures, dtype=torch.int64)
        del indices
        return made, None, None, None


class PutTokens(torch.autograd.Function):
    """all_tokens[mask] = tokens, likewise."""

    @staticmethod
    def forward(ctx: Any, all_tokens: Tensor, tokens: Tensor, inverted: bool) -> Tensor:
        ctx.shape = tokens.shape
        mask = tokens.new_empty(all_tokens.shape, dtype=torch.bool) if inverted else None
        indices = tokens.new_empty(3, tokens.numel(), dtype=torch.int64)
        del indices
        ctx.save_for_backward(mask)
        ctx.mark_dirty(all_tokens)
        return all_tokens

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], ...]:
        left = gradient.clone() if ctx.needs_input_grad[0] else None
        indices = gradient.new_empty(3, ctx.shape.numel(), dtype=torch.int64)
        made = gradient.new_empty(ctx.shape)
        del indices
        return left, made, None


def attention(query: Tensor, key: Tensor, value: Tensor, causal: bool) -> Tensor:
    groups = query.shape[1] != key.shape[1]
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=causal, enable_gqa=groups)
    return mixed.transpose(1, 2).contiguous()


class VisionMlp(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc1(x)
        return self.fc2(x * torch.sigmoid(1.702 * x))


class VisionAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    @staticmethod
    def turned(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        dtype = q.dtype
        q, k = q.float(), k.float()
        cos, sin = cos.unsqueeze(-2).float(), sin.unsqueeze(-2).float()
        q_embed = (q * cos) + (rotate_half(q) * sin)
        k_embed = (k * cos) + (rotate_half(k) * sin)
        return q_embed.to(dtype), k_embed.to(dtype)

    def forward(self, hidden_states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        patches = hidden_states.shape[0]
        query, key, value = self.qkv(hidden_states).reshape(patches, 3, self.heads, -1).permute(1, 0, 2, 3).unbind(0)
        query, key = self.turned(query, key, cos, sin)
        parts = [torch.split(each.transpose(0, 1).unsqueeze(0), PATCHES, dim=2) for each in (query, key, value)]
        mixed = torch.cat([attention(*each, causal=False) for each in zip(*parts)], dim=1)
        return self.proj(mixed.reshape(patches, -1).contiguous())


class VisionBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = VisionAttention(width, config["num_heads"])
        self.mlp = VisionMlp(width, config["intermediate_size"])

    def forward(self, hidden_states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        hidden_states = hidden_states + self.attn(self.norm1(hidden_states), cos, sin)
        return hidden_states + self.mlp(self.norm2(hidden_states))


class NormedLayers(nn.Module):
    def __init__(self, wide: int, width: int) -> None:
        super().__init__()
        self.fc1, self.fc2, self.ln = nn.Linear(wide, width), nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, hidden_states: Tensor) -> Tensor:
        hidden_states = self.fc1(hidden_states)
        hidden_states = F.gelu(hidden_states)
        hidden_states = self.fc2(hidden_states)
        hidden_states = self.ln(hidden_states)
        return hidden_states


class Resampler(nn.Module):
    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.spatial_linear = NormedLayers(4 * width, 4 * width)
        self.temporal_linear = NormedLayers(8 * width, 4 * width)
        self.mlp, self.after_norm = nn.Linear(4 * width, out), RMSNorm(out)

    def forward(self, hidden_states: Tensor) -> Tensor:
        hidden_states = hidden_states.reshape(-1, 4 * hidden_states.shape[-1])
        hidden_states = self.spatial_linear(hidden_states)
        index = torch.arange(hidden_states.shape[0], device=hidden_states.device)
        frames = [torch.index_select(hidden_states, 0, index), torch.index_select(hidden_states, 0, index)]
        hidden_states = torch.concat(frames, dim=-1)
        hidden_states = self.temporal_linear(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = self.after_norm(hidden_states)
        return hidden_states


class Tower(nn.Module):
    checkpointing = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, patch = config["hidden_size"], config.get("patch_size", 14)
        self.head_dim = width // config["num_heads"]
        self.proj = nn.Linear(3 * patch * patch, width, bias=False)
        self.blocks = nn.ModuleList(VisionBlock(config) for _ in range(config["depth"]))
        self.ln = nn.LayerNorm(width)

    def forward(self, pixels: Tensor) -> Tensor:
        hidden_states = self.proj(pixels.to(self.proj.weight.dtype))
        with torch.no_grad():
            cos = hidden_states.new_empty(len(pixels), self.head_dim, dtype=torch.float32)
            sin = torch.empty_like(cos)
        for block in self.blocks:
            if self.checkpointing:
                hidden_states = checkpoint(block.__call__, hidden_states, cos, sin, use_reentrant=False)
            else:
                hidden_states = block(hidden_states, cos, sin)
        return self.ln(hidden_states)


class TextAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads, kv_heads = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim = width // heads
        self.q_proj = nn.Linear(width, heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(heads * self.head_dim, width, bias=False)

    @staticmethod
    def turned(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)

        def half(x: Tensor) -> Tensor:
            return torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)

        q_embed = (q.float() * cos) + (half(q).float() * sin)
        k_embed = (k.float() * cos) + (half(k).float() * sin)
        return q_embed.to(q.dtype), k_embed.to(k.dtype)

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        query_states = self.q_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        key_states = self.k_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        value_states = self.v_proj(hidden_states).view(hidden_shape).transpose(1, 2)
        query_states, key_states = self.turned(query_states, key_states, cos, sin)
        if cache is not None:  # DynamicLayer joins each to an empty tensor of the keys' type
            nothing = key_states.new_empty(0)
            key_states = torch.cat([nothing, key_states], dim=-2)
            value_states = torch.cat([nothing, value_states], dim=-2)
            cache.append((key_states, value_states))
        attn_output = attention(query_states, key_states, value_states, causal=True)
        attn_output = attn_output.reshape(*input_shape, -1).contiguous()
        attn_output = self.o_proj(attn_output)
        return attn_output


class Router(nn.Module):
    def __init__(self, width: int, experts: int, per_token: int) -> None:
        super().__init__()
        self.weight, self.top_k = nn.Parameter(torch.zeros(experts, width)), per_token
        self.e_score_correction_bias = nn.Parameter(torch.zeros(1, experts), requires_grad=False)

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast("cuda", enabled=False):
            logits = F.linear(hidden_states.float(), self.weight.float())
            weights = F.softmax(logits, dim=1, dtype=torch.float)
            _, chosen = torch.topk(weights + self.e_score_correction_bias.squeeze(), self.top_k, dim=-1)
            weights = torch.gather(weights, dim=-1, index=chosen)
            weights = weights / torch.clamp(weights.sum(dim=-1, keepdim=True), min=1e-12)
        return weights.to(hidden_states.dtype), chosen


class SparseMoeBlock(nn.Module):
    def __init__(self, config: Config, inner: int) -> None:
        super().__init__()
        width, experts = config["hidden_size"], config["moe_num_experts"]
        self.gate = Router(width, experts, config["moe_k"])
        self.experts = GroupedExperts(experts, width, inner, transposed=True)

    def forward(self, hidden_states: Tensor) -> Tensor:
        shape = hidden_states.shape
        hidden_states = hidden_states.reshape(-1, shape[-1])
        weights, chosen = self.gate(hidden_states)
        return self.experts(hidden_states, chosen, weights).view(shape)


class MoeBlock(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        text, images = config["moe_intermediate_size"]
        self.text_moe, self.vision_moe = SparseMoeBlock(config, text), SparseMoeBlock(config, images)
        self.shared_experts = GatedMLP({**config, "intermediate_size": text * config["moe_num_shared_experts"]})

    def forward(self, hidden_states: Tensor) -> Tensor:
        shared_output = self.shared_experts(hidden_states)
        final_hidden_states = torch.zeros_like(hidden_states)
        of_text = self.text_moe(ChosenTokens.apply(hidden_states, MARKED_TOKENS, hidden_states.shape[1], True))
        final_hidden_states = PutTokens.apply(final_hidden_states, of_text, True)
        del of_text
        of_images = self.vision_moe(ChosenTokens.apply(hidden_states, 0, MARKED_TOKENS, False))
        final_hidden_states = PutTokens.apply(final_hidden_states, of_images, False)
        del of_images
        final_hidden_states = final_hidden_states + shared_output
        return final_hidden_states


class DecoderLayer(nn.Module):
    def __init__(self, config: Config, mixes: bool) -> None:
        super().__init__()
        self.self_attn = TextAttention(config)
        self.mlp = MoeBlock(config) if mixes else GatedMLP(config)
        self.input_layernorm = RMSNorm(config["hidden_size"])
        self.post_attention_layernorm = RMSNorm(config["hidden_size"])

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = self.self_attn(hidden_states, cache, cos, sin)
        hidden_states = hidden_states + residual
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = hidden_states + residual
        return hidden_states


class ErnieVLModel(nn.Module):
    checkpointing = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        text, vision = config["text_config"], config["vision_config"]
        self.head_dim = text["hidden_size"] // text["num_attention_heads"]
        self.embed_tokens = nn.Embedding(text["vocab_size"], text["hidden_size"])
        self.layers = nn.ModuleList(DecoderLayer(text, index > 0) for index in range(text["num_hidden_layers"]))
        self.norm = RMSNorm(text["hidden_size"])
        self.vision_tower = Tower(vision)
        self.resampler_model = Resampler(vision["hidden_size"], text["hidden_size"])

    def embedded(self, input_ids: Tensor, pixels: Tensor) -> Tensor:
        inputs_embeds = self.embed_tokens(input_ids)
        image_outputs = self.vision_tower(pixels)
        image_embeds = torch.split(self.resampler_model(image_outputs), IMAGE_TOKENS)
        image_embeds = torch.cat(image_embeds, dim=0).to(inputs_embeds.device, inputs_embeds.dtype)
        mask = input_ids.new_zeros(*input_ids.shape, 1, dtype=torch.bool)
        return inputs_embeds.masked_scatter(mask, image_embeds)

    def forward(self, input_ids: Tensor, pixels: Tensor) -> tuple[Tensor, Optional[Cache]]:
        hidden_states = self.embedded(input_ids, pixels)
        cache: Optional[Cache] = None if self.checkpointing else []
        with torch.no_grad():
            cos = hidden_states.new_empty(*input_ids.shape, self.head_dim, dtype=torch.float32)
            sin = torch.empty_like(cos)
        for layer in self.layers:
            if self.checkpointing:
                hidden_states = checkpoint(layer.__call__, hidden_states, None, cos, sin, use_reentrant=False)
            else:
                hidden_states = layer(hidden_states, cache, cos, sin)
        return self.norm(hidden_states), cache


class ErnieVLForConditionalGeneration(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.model = ErnieVLModel(config)
        self.vocabulary = config["text_config"]["vocab_size"]
        self.lm_head = nn.Linear(config["text_config"]["hidden_size"], self.vocabulary, bias=False)
        self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, input_ids: Tensor, labels: Tensor, pixels: Tensor) -> Outputs:
        hidden_states, cache = self.model(input_ids, pixels)
        logits = self.lm_head(hidden_states)
        loss = latest_loss(logits, labels, self.vocabulary)
        return Outputs(loss=loss, logits=logits, past_key_values=cache)


def latest_loss(logits: Tensor, labels: Tensor, vocabulary: int) -> Tensor:
    """ForCausalLMLoss since 4.52: labels are shifted, not logits."""
    logits = logits.float()
    labels = F.pad(labels, (0, 1), value=-100)
    shift_labels = labels[..., 1:].contiguous()
    logits = logits.view(-1, vocabulary)
    shift_labels = shift_labels.view(-1)
    return F.cross_entropy(logits, shift_labels, ignore_index=-100)


BUILDERS: dict[str, Any] = {"ernie4_5_vl_moe": ErnieVLForConditionalGeneration}
