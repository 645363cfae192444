"""Phi-3.5-vision as its publishers' own code calls it, and BLIP-2 as transformers 4.52 does, with Phi-3 and OPT as text
models. The samples hold one image of 1024 x 768 pixels."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from . import decoders, more_decoders
from .layers import Config, Outputs
from .towers import CLIPVision

#: Crops of an image of 1024 x 768, two in a row, and patches of a side of each.
CROPS, SIDE = 2, 24


class ClipStates(CLIPVision):
    """All of the tower's hidden states."""

    def states(self, pixel_values: Tensor) -> tuple[Tensor, ...]:
        patch_embeds = self.patch_embedding(pixel_values).flatten(2).transpose(1, 2)
        class_embeds = self.class_embedding.expand(pixel_values.shape[0], -1, -1)
        embeddings = torch.cat([class_embeds, patch_embeds], dim=1)
        hidden_states = self.pre_layrnorm(embeddings + self.position_embedding)
        states = (hidden_states,)
        for layer in self.layers:
            hidden_states = self.run_blocks([layer], hidden_states, None)
            states += (hidden_states,)
        self.post_layernorm(hidden_states[:, 0, :])
        return states


class ImageEmbedding(nn.Module):
    """Phi3ImageEmbedding, with the table of words."""

    def __init__(self, config: Config, wte: nn.Embedding) -> None:
        super().__init__()
        processor = config["img_processor"]
        wide = 4 * processor["hidden_size"]
        self.wte, self.img_processor = wte, ClipStates({**processor, "image_size": 336, "patch_size": 14})
        self.glb_GN, self.sub_GN = nn.Parameter(torch.zeros(1, 1, wide)), nn.Parameter(torch.zeros(1, 1, 1, wide))
        width = config["hidden_size"]
        self.img_projection = nn.Sequential(nn.Linear(wide, width), nn.GELU(), nn.Linear(width, width))
        self.pixels = torch.empty(0)

    def img_features(self, img_embeds: Tensor) -> Tensor:
        img_feature = self.img_processor.states(img_embeds)[-2]
        return img_feature[:, 1:]

    def merged(self, image_features: Tensor, crops: int) -> Tensor:
        count, _, width = image_features.shape
        half = SIDE // 2
        parted = image_features.reshape(count, half, 2, half, 2, width).permute(0, 1, 3, 2, 4, 5)
        parted = parted.reshape(count, -1, 4 * width).reshape(-1, crops, crops, half, half, 4 * width)
        return parted.permute(0, 1, 3, 2, 4, 5).reshape(-1, crops * half, crops * half, 4 * width)

    def with_newline(self, image_features_hd: Tensor) -> Tensor:
        images, rows, _, width = image_features_hd.shape
        newline_embeddings = self.sub_GN.expand(images, rows, -1, -1)
        return torch.cat([image_features_hd, newline_embeddings], dim=2).reshape(images, -1, width)

    def transformed(self, image_features: Tensor) -> Tensor:
        global_image_features = image_features[:, 0]
        global_image_features_hd = self.merged(global_image_features, 1)
        global_image_features_hd_newline = self.with_newline(global_image_features_hd)
        all_image_embeddings = []
        for at in range(len(image_features)):
            sub_image_features = image_features[at, 1 : 1 + CROPS * CROPS]
            sub_image_features_hd = self.merged(sub_image_features, CROPS)
            sub_image_features_hd_newline = self.with_newline(sub_image_features_hd)
            all_image_embeddings.extend(
                [sub_image_features_hd_newline.squeeze(0), self.glb_GN.squeeze(0), global_image_features_hd_newline[at]]
            )
        return self.img_projection(torch.cat(all_image_embeddings, dim=0))

    def forward(self, input_ids: Tensor) -> Tensor:
        hidden_states = self.wte(input_ids)
        img_features = self.img_features(self.pixels)
        img_features = img_features.reshape(len(input_ids), -1, *img_features.shape[1:])
        image_features_proj = self.transformed(img_features)
        mask = input_ids.new_zeros(*input_ids.shape, 1, dtype=torch.bool)
        return hidden_states.masked_scatter(mask, image_features_proj.to(hidden_states.dtype))


class Phi3V(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.text = decoders.DecoderForCausalLM({**config, "model_type": "phi3"})
        self.text.model.embed_tokens = ImageEmbedding(config, self.text.model.embed_tokens)

    def forward(self, input_ids: Tensor, labels: Tensor, pixels: Tensor) -> Outputs:
        self.text.model.embed_tokens.pixels = pixels
        outputs = self.text(input_ids, input_ids, labels)
        self.text.model.embed_tokens.pixels = torch.empty(0)
        return outputs


class QFormerAttention(nn.Module):
    def __init__(self, config: Config, read: int) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.heads = config["num_attention_heads"]
        self.query, self.dense = nn.Linear(width, width), nn.Linear(width, width)
        self.key, self.value = nn.Linear(read, width), nn.Linear(read, width)
        self.norm = nn.LayerNorm(width)

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).permute(0, 2, 1, 3)

    def attend(self, hidden_states: Tensor, source: Tensor, masked: bool) -> Tensor:
        key_layer = self.split(self.key(source))
        value_layer = self.split(self.value(source))
        query_layer = self.split(self.query(hidden_states))
        attention_scores = torch.matmul(query_layer, key_layer.transpose(-1, -2))
        attention_scores = attention_scores / key_layer.shape[-1] ** 0.5
        if masked:
            attention_scores = attention_scores + torch.zeros_like(source[:, None, None, :, 0])
        attention_probs = F.softmax(attention_scores, dim=-1)
        attention_probs_dropped = F.dropout(attention_probs, 0.1)
        context_layer = torch.matmul(attention_probs_dropped, value_layer)
        context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
        return context_layer.view(hidden_states.shape)

    def forward(self, hidden_states: Tensor, source: Tensor, masked: bool) -> Tensor:
        mixed = F.dropout(self.dense(self.attend(hidden_states, source, masked)), 0.1)
        return self.norm(mixed + hidden_states)


class QFormerLayer(nn.Module):
    def __init__(self, config: Config, index: int) -> None:
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.attention = QFormerAttention(config, width)
        self.crosses = index % 2 == 0
        self.crossattention = QFormerAttention(config, config["encoder_hidden_size"]) if self.crosses else None
        self.dense1, self.dense2, self.norm = nn.Linear(width, inner), nn.Linear(inner, width), nn.LayerNorm(width)

    def fed(self, attention_output: Tensor) -> Tensor:
        intermediate_output = F.gelu(self.dense1(attention_output))
        layer_output = F.dropout(self.dense2(intermediate_output), 0.1)
        return self.norm(layer_output + attention_output)

    def forward(self, hidden_states: Tensor, image: Tensor) -> Tensor:
        attention_output = self.attention(hidden_states, hidden_states, False)
        query_attention_output = attention_output[:, :32, :]
        if self.crossattention is not None:
            query_attention_output = self.crossattention(query_attention_output, image, True)
        layer_output = self.fed(query_attention_output)
        return layer_output


class Blip2Layer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.heads = config["num_attention_heads"]
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def attend(self, hidden_states: Tensor) -> Tensor:
        batch, length, width = hidden_states.shape
        mixed_qkv = self.qkv(hidden_states)
        mixed_qkv = mixed_qkv.reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attn_output = F.scaled_dot_product_attention(mixed_qkv[0], mixed_qkv[1], mixed_qkv[2])
        attn_output = attn_output.transpose(1, 2).contiguous()
        attn_output = attn_output.reshape(batch, length, width).contiguous()
        return self.projection(attn_output)

    def forward(self, hidden_states: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.attend(self.norm1(hidden_states))
        hidden_states = hidden_states + residual
        residual = hidden_states
        hidden_states = self.norm2(hidden_states)
        hidden_states = self.fc2(F.gelu(self.fc1(hidden_states)))
        return hidden_states + residual


class Blip2Embedding(nn.Module):
    """The table of words, with the image's features among them."""

    def __init__(self, config: Config, wte: nn.Embedding) -> None:
        super().__init__()
        vision, former = config["vision_config"], config["qformer_config"]
        width = vision["hidden_size"]
        self.wte = wte
        self.class_embedding = nn.Parameter(torch.zeros(1, 1, width))
        self.patch_embedding = nn.Conv2d(3, width, 14, 14)
        self.position_embedding = nn.Parameter(torch.zeros(1, (vision["image_size"] // 14) ** 2 + 1, width))
        self.layers = nn.ModuleList(Blip2Layer(vision) for _ in range(vision["num_hidden_layers"]))
        self.post_layernorm = nn.LayerNorm(width)
        self.query_tokens = nn.Parameter(torch.zeros(1, 32, former["hidden_size"]))
        self.layernorm = nn.LayerNorm(former["hidden_size"])
        self.former = nn.ModuleList(QFormerLayer(former, index) for index in range(former["num_hidden_layers"]))
        self.language_projection = nn.Linear(former["hidden_size"], config["text_config"]["hidden_size"])
        self.checkpointing, self.pixels, self.handed = False, torch.empty(0), ()

    def call(self, block: nn.Module, *inputs: Tensor) -> Tensor:
        return checkpoint(block.__call__, *inputs, use_reentrant=False) if self.checkpointing else block(*inputs)

    def tower(self, pixel_values: Tensor) -> Tensor:
        patch_embeds = self.patch_embedding(pixel_values).flatten(2).transpose(1, 2)
        class_embeds = self.class_embedding.expand(len(pixel_values), 1, -1)
        embeddings = torch.cat([class_embeds, patch_embeds], dim=1)
        hidden_states = embeddings + self.position_embedding
        del embeddings, patch_embeds
        for layer in self.layers:
            hidden_states = self.call(layer, hidden_states)
        return self.post_layernorm(hidden_states)

    def forward(self, input_ids: Tensor) -> Tensor:
        image_embeds = self.tower(self.pixels)
        query = self.query_tokens.expand(len(image_embeds), -1, -1)
        query = F.dropout(self.layernorm(query), 0.1)
        for layer in self.former:
            query = self.call(layer, query, image_embeds)
        self.handed = (image_embeds, query)
        features = self.language_projection(query)
        inputs_embeds = self.wte(input_ids)
        mask = input_ids.new_zeros(*input_ids.shape, 1, dtype=torch.bool)
        return inputs_embeds.masked_scatter(mask, features.to(inputs_embeds.dtype))


class Blip2(nn.Module):
    checkpointing = False

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.text = more_decoders.OPTForCausalLM(config["text_config"])
        self.text.model.embed_tokens = Blip2Embedding(config, self.text.model.embed_tokens)

    def forward(self, input_ids: Tensor, labels: Tensor, pixels: Tensor) -> Outputs:
        embedding = self.text.model.embed_tokens
        embedding.checkpointing, embedding.pixels = self.checkpointing, pixels
        outputs = self.text(input_ids, input_ids, labels)
        embedding.pixels = torch.empty(0)
        return outputs


BUILDERS: dict[str, Any] = {"phi3_v": Phi3V, "blip-2": Blip2}
