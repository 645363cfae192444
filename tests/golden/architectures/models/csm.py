"""CSM as transformers 5.17 calls it: a backbone of tokens, and a depth decoder of each frame's codes. All tokens of a
sample are frames; the codec that makes their codes is not called."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .ernie_vl import attention
from .layers import Cache, Config, Outputs, RMSNorm, RotaryEmbedding, apply_rotary
from .vision_language import GatedLayers

#: Parameters of the small codec, and elements of its tables, which are held.
CODEC, CODEBOOKS = 519_401, 4 * 64 * 33


class CsmAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.head_dim = config["hidden_size"], config["head_dim"]
        heads, shared = config["num_attention_heads"], config["num_key_value_heads"]
        self.q_proj = nn.Linear(width, heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(width, shared * self.head_dim, bias=False)
        self.v_proj = nn.Linear(width, shared * self.head_dim, bias=False)
        self.o_proj = nn.Linear(heads * self.head_dim, width, bias=False)

    def forward(self, x: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        shape = (*x.shape[:2], -1, self.head_dim)
        query = self.q_proj(x).view(shape).transpose(1, 2)
        key = self.k_proj(x).view(shape).transpose(1, 2)
        value = self.v_proj(x).view(shape).transpose(1, 2)
        query, key = apply_rotary(query, key, cos, sin)
        if cache is not None:
            nothing = key.new_empty(0)
            key = torch.cat([nothing, key], dim=-2)
            value = torch.cat([nothing, value], dim=-2)
            cache.append((key, value))
        attn_output = attention(query, key, value, causal=True).reshape(*x.shape[:2], -1).contiguous()
        return self.o_proj(attn_output)


class CsmLayer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self_attn = CsmAttention(config)
        self.mlp = GatedLayers(config["hidden_size"], config["intermediate_size"])
        self.input_layernorm, self.post_attention_layernorm = (RMSNorm(config["hidden_size"]) for _ in range(2))

    def forward(self, x: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        residual = x
        x = self.input_layernorm(x)
        x = self.self_attn(x, cache, cos, sin)
        x = residual + x
        residual = x
        x = self.post_attention_layernorm(x)
        x = self.mlp(x)
        return residual + x


class CsmDecoder(nn.Module):
    checkpointing = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layers = nn.ModuleList(CsmLayer(config) for _ in range(config["num_hidden_layers"]))
        self.norm, self.rotary_emb = RMSNorm(config["hidden_size"]), RotaryEmbedding(config["head_dim"])

    def forward(self, x: Tensor) -> tuple[Tensor, Optional[Cache]]:
        cache: Optional[Cache] = None if self.checkpointing else []
        cos, sin = self.rotary_emb(x, torch.arange(x.shape[1], device=x.device).unsqueeze(0))
        for layer in self.layers:
            if self.checkpointing:
                x = checkpoint(layer.__call__, x, None, cos, sin, use_reentrant=False)
            else:
                x = layer(x, cache, cos, sin)
        return self.norm(x), cache


class DepthDecoder(nn.Module):
    def __init__(self, config: Config, backbone: int, table: nn.Embedding) -> None:
        super().__init__()
        self.embed_tokens, self.vocabulary = table, config["vocab_size"]
        self.inputs_embeds_projector = nn.Linear(backbone, config["hidden_size"], bias=False)
        self.decoder = CsmDecoder(config)
        self.weight = nn.Parameter(torch.zeros(config["num_codebooks"] - 1, config["hidden_size"], self.vocabulary))

    def forward(self, ids: Tensor, backbone: Tensor, labels: Tensor) -> Outputs:
        offset = torch.arange(ids.shape[1], device=ids.device) * self.vocabulary
        inputs_embeds = self.embed_tokens(ids + offset)
        inputs_embeds[:, 0] = backbone
        inputs_embeds = self.inputs_embeds_projector(inputs_embeds)
        hidden_states, cache = self.decoder(inputs_embeds)
        del inputs_embeds
        hidden_states = hidden_states[:, 1:, :]
        weight = self.weight[torch.arange(hidden_states.shape[1])]
        made = [F.linear(hidden_states[:, at, :], weight[at].T) for at in range(weight.shape[0])]
        logits = torch.stack(made, dim=1).contiguous()
        del made, weight
        loss = F.cross_entropy(logits.float().view(-1, self.vocabulary), labels[..., 1:].contiguous().view(-1))
        return Outputs(loss=loss, logits=logits, past_key_values=cache)


class CsmForConditionalGeneration(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.vocabulary, self.codes = config["hidden_size"], config["vocab_size"], config["num_codebooks"]
        self.lm_head = nn.Linear(width, self.vocabulary, bias=False)
        self.embed_text_tokens = nn.Embedding(config["text_vocab_size"], width)
        self.embed_audio_tokens = nn.Embedding(self.codes * self.vocabulary, width)
        self.backbone_model = CsmDecoder(config)
        self.depth_decoder = DepthDecoder(config["depth_decoder_config"], width, self.embed_audio_tokens)
        self.codec_model = nn.Parameter(torch.zeros(CODEC), requires_grad=False)
        self.register_buffer("codebooks", torch.zeros(CODEBOOKS))

    def forward(self, input_ids: Tensor, labels: Tensor, codes: Tensor) -> Outputs:
        inputs_embeds = self.embed_text_tokens(input_ids)
        offsets = torch.arange(self.codes, device=codes.device) * self.vocabulary
        audio_embeds = self.embed_audio_tokens(codes + offsets).sum(dim=2)
        inputs_embeds.add_(audio_embeds.clone())
        del audio_embeds
        hidden, cache = self.backbone_model(inputs_embeds)
        backbone_logits = self.lm_head(hidden)
        loss = F.cross_entropy(backbone_logits.float().view(-1, self.vocabulary), labels.view(-1))
        frames = codes.flatten(0, 1)
        ids = F.pad(frames[..., : self.codes - 1], (1, 0), value=0)
        depth = self.depth_decoder(ids, hidden.flatten(0, 1).clone(), frames)
        loss = loss + depth.loss
        return Outputs(loss, (backbone_logits, depth.logits), (cache, depth.past_key_values))


BUILDERS: dict[str, Any] = {"csm": CsmForConditionalGeneration}
