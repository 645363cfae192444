"""Images and sounds: CLIP, Whisper, Swin, DeiT."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .encoders import Stack, ViTLayer
from .layers import Cache, Config, Outputs
from .more_decoders import split_heads


class StreamAttention(nn.Module):
    """CLIP's and Whisper's: of a stream to itself or to another one."""

    def __init__(self, width: int, heads: int, key_bias: bool, copies: bool) -> None:
        super().__init__()
        self.heads, self.copies = heads, copies
        self.k_proj, self.v_proj = nn.Linear(width, width, bias=key_bias), nn.Linear(width, width)
        self.q_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)

    def parted(self, tensor: Tensor) -> Tensor:
        tensor = split_heads(tensor, self.heads)
        return tensor.contiguous() if self.copies else tensor

    def forward(self, hidden_states: Tensor, source: Tensor, mask: Optional[Tensor], causal: bool, cache: Optional[Cache]) -> Tensor:
        query_states = self.parted(self.q_proj(hidden_states))
        key_states = self.parted(self.k_proj(source))
        value_states = self.parted(self.v_proj(source))
        if cache is not None:
            cache.append((key_states, value_states))
        attn_output = F.scaled_dot_product_attention(query_states, key_states, value_states, attn_mask=mask, is_causal=causal)
        attn_output = attn_output.transpose(1, 2)
        attn_output = attn_output.reshape(hidden_states.shape)
        return self.out_proj(attn_output)


class CLIPLayer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.self_attn = StreamAttention(width, config["num_attention_heads"], True, False)
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def mlp(self, hidden_states: Tensor) -> Tensor:
        hidden_states = self.fc1(hidden_states)
        hidden_states = F.gelu(hidden_states)
        return self.fc2(hidden_states)

    def forward(self, hidden_states: Tensor, mask: Optional[Tensor]) -> Tensor:
        residual = hidden_states
        hidden_states = self.layer_norm1(hidden_states)
        hidden_states = self.self_attn(hidden_states, hidden_states, mask, False, None)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.layer_norm2(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class CLIPText(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.token_embedding = nn.Embedding(config["vocab_size"], width)
        self.position_embedding = nn.Embedding(config["max_position_embeddings"], width)
        self.layers = nn.ModuleList(CLIPLayer(config) for _ in range(config["num_hidden_layers"]))
        self.final_layer_norm = nn.LayerNorm(width)

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Tensor]:
        tokens = input_ids.shape[1]
        inputs_embeds = self.token_embedding(input_ids)
        position_ids = torch.arange(tokens, device=input_ids.device).unsqueeze(0)
        hidden_states = inputs_embeds + self.position_embedding(position_ids)
        mask = torch.zeros(1, 1, tokens, tokens, dtype=hidden_states.dtype, device=input_ids.device)
        mask = mask.expand(input_ids.shape[0], 1, -1, -1)
        last_hidden_state = self.final_layer_norm(self.run_blocks(self.layers, hidden_states, mask))
        return last_hidden_state, last_hidden_state[:, -1]


class CLIPVision(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, side, patch = config["hidden_size"], config["image_size"], config["patch_size"]
        self.class_embedding = nn.Parameter(torch.zeros(1, 1, width))
        self.patch_embedding = nn.Conv2d(3, width, patch, patch, bias=False)
        self.position_embedding = nn.Parameter(torch.zeros(1, (side // patch) ** 2 + 1, width))
        self.pre_layrnorm, self.post_layernorm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.layers = nn.ModuleList(CLIPLayer(config) for _ in range(config["num_hidden_layers"]))

    def forward(self, pixel_values: Tensor) -> tuple[Tensor, Tensor]:
        patch_embeds = self.patch_embedding(pixel_values).flatten(2).transpose(1, 2)
        class_embeds = self.class_embedding.expand(pixel_values.shape[0], -1, -1)
        embeddings = torch.cat([class_embeds, patch_embeds], dim=1)
        embeddings = embeddings + self.position_embedding
        last_hidden_state = self.run_blocks(self.layers, self.pre_layrnorm(embeddings), None)
        return last_hidden_state, self.post_layernorm(last_hidden_state[:, 0, :])


class CLIPModel(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        text, vision, width = config["text_config"], config["vision_config"], config["projection_dim"]
        self.text_model, self.vision_model = CLIPText(text), CLIPVision(vision)
        self.visual_projection = nn.Linear(vision["hidden_size"], width, bias=False)
        self.text_projection = nn.Linear(text["hidden_size"], width, bias=False)
        self.logit_scale = nn.Parameter(torch.zeros(1, 1))

    def loss(self, logits_per_text: Tensor) -> Tensor:
        numbers = torch.arange(len(logits_per_text), device=logits_per_text.device)
        caption_loss = F.cross_entropy(logits_per_text, numbers)
        image_loss = F.cross_entropy(logits_per_text.t(), numbers)
        return (caption_loss + image_loss) / 2.0

    def forward(self, input_ids: Tensor, attention_mask: Tensor, pixel_values: Tensor) -> Any:
        vision_outputs = self.vision_model(pixel_values)
        text_outputs = self.text_model(input_ids)
        image_embeds = self.visual_projection(vision_outputs[1])
        text_embeds = self.text_projection(text_outputs[1])
        image_embeds = image_embeds / torch.pow(torch.sum(torch.pow(image_embeds, 2), dim=-1, keepdim=True), 0.5)
        text_embeds = text_embeds / torch.pow(torch.sum(torch.pow(text_embeds, 2), dim=-1, keepdim=True), 0.5)
        logits_per_text = torch.matmul(text_embeds, image_embeds.t()) * self.logit_scale.exp()
        hidden = (text_outputs[0], vision_outputs[0], image_embeds, text_embeds)
        return Outputs(loss=self.loss(logits_per_text), logits=logits_per_text, past_key_values=[hidden])  # type: ignore


class WhisperLayer(nn.Module):
    """The encoder's, and with attention to it the decoder's."""

    def __init__(self, width: int, heads: int, inner: int, crosses: bool) -> None:
        super().__init__()
        self.self_attn = StreamAttention(width, heads, False, True)
        self.encoder_attn = StreamAttention(width, heads, False, True) if crosses else None
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if crosses else 2))
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, hidden_states: Tensor, encoded: Optional[Tensor], cache: Optional[Cache]) -> Tensor:
        residual = hidden_states
        hidden_states = self.norms[0](hidden_states)
        hidden_states = self.self_attn(hidden_states, hidden_states, None, self.encoder_attn is not None, cache)
        hidden_states = residual + hidden_states
        if self.encoder_attn is not None:
            residual = hidden_states
            hidden_states = self.norms[2](hidden_states)
            hidden_states = self.encoder_attn(hidden_states, encoded, None, False, cache)
            hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.norms[1](hidden_states)
        hidden_states = F.gelu(self.fc1(hidden_states))
        hidden_states = self.fc2(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states


class WhisperEncoder(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["d_model"]
        self.conv1 = nn.Conv1d(config["num_mel_bins"], width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.embed_positions = nn.Embedding(config["max_source_positions"], width)
        self.embed_positions.requires_grad_(False)
        sizes = (width, config["encoder_attention_heads"], config["encoder_ffn_dim"], False)
        self.layers = nn.ModuleList(WhisperLayer(*sizes) for _ in range(config["encoder_layers"]))
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, input_features: Tensor) -> Tensor:
        inputs_embeds = F.gelu(self.conv1(input_features))
        inputs_embeds = F.gelu(self.conv2(inputs_embeds))
        inputs_embeds = inputs_embeds.permute(0, 2, 1)
        hidden_states = inputs_embeds + self.embed_positions.weight
        hidden_states = self.run_blocks(self.layers, hidden_states, None, None)
        return self.layer_norm(hidden_states)


class WhisperDecoder(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["d_model"]
        self.embed_tokens = nn.Embedding(config["vocab_size"], width)
        self.embed_positions = nn.Embedding(config["max_target_positions"], width)
        sizes = (width, config["decoder_attention_heads"], config["decoder_ffn_dim"], True)
        self.layers = nn.ModuleList(WhisperLayer(*sizes) for _ in range(config["decoder_layers"]))
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, input_ids: Tensor, encoded: Tensor, cache: Optional[Cache]) -> Tensor:
        inputs_embeds = self.embed_tokens(input_ids)
        positions = self.embed_positions(torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0))
        hidden_states = inputs_embeds + positions
        hidden_states = self.run_blocks(self.layers, hidden_states, encoded, cache)
        return self.layer_norm(hidden_states)


class WhisperForConditionalGeneration(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.vocabulary = config["vocab_size"]
        self.encoder, self.decoder = WhisperEncoder(config), WhisperDecoder(config)
        self.proj_out = nn.Linear(config["d_model"], self.vocabulary, bias=False)
        self.proj_out.weight = self.decoder.embed_tokens.weight

    def forward(self, input_features: Tensor, decoder_input_ids: Tensor, labels: Tensor) -> Outputs:
        cache: Optional[Cache] = None if self.encoder.checkpointing else []
        encoded = self.encoder(input_features)
        decoded = self.decoder(decoder_input_ids, encoded, cache)
        lm_logits = self.proj_out(decoded)
        loss = F.cross_entropy(lm_logits.view(-1, self.vocabulary), labels.reshape(-1))
        return Outputs(loss=loss, logits=lm_logits, past_key_values=cache, hidden=encoded)


def window_partition(x: Tensor, window: int) -> Tensor:
    batch, height, width, channels = x.shape
    x = x.view(batch, height // window, window, width // window, window, channels)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, window, window, channels)


def window_reverse(windows: Tensor, window: int, height: int, width: int) -> Tensor:
    channels = windows.shape[-1]
    windows = windows.view(-1, height // window, width // window, window, window, channels)
    return windows.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, height, width, channels)


class SwinSelfAttention(nn.Module):
    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads, self.area = heads, window * window
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        self.register_buffer("relative_position_index", torch.zeros(self.area, self.area, dtype=torch.int64))

    def forward(self, hidden_states: Tensor, attention_mask: Optional[Tensor]) -> Tensor:
        batch, dim, _ = hidden_states.shape
        mixed_query_layer = self.query(hidden_states)
        key_layer = split_heads(self.key(hidden_states), self.heads)
        value_layer = split_heads(self.value(hidden_states), self.heads)
        query_layer = split_heads(mixed_query_layer, self.heads)
        attention_scores = torch.matmul(query_layer, key_layer.transpose(-1, -2))
        attention_scores = attention_scores / 5.0
        bias = torch.index_select(self.relative_position_bias_table, 0, self.relative_position_index.view(-1))
        bias = bias.view(self.area, self.area, -1)
        bias = bias.permute(2, 0, 1).contiguous()
        attention_scores = attention_scores + bias.unsqueeze(0)
        if attention_mask is not None:
            count = attention_mask.shape[0]
            attention_scores = attention_scores.view(batch // count, count, self.heads, dim, dim)
            attention_scores = attention_scores + attention_mask.unsqueeze(1).unsqueeze(0)
            attention_scores = attention_scores.view(-1, self.heads, dim, dim)
        attention_probs = F.softmax(attention_scores, dim=-1)
        context_layer = torch.matmul(attention_probs, value_layer)
        context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
        return context_layer.view(hidden_states.shape)


class SwinLayer(nn.Module):
    def __init__(self, width: int, heads: int, window: int, side: int, shift: int, drop_path: float) -> None:
        super().__init__()
        self.window, self.side, self.shift, self.drop_path = window, side, shift, drop_path
        self.layernorm_before, self.layernorm_after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.self_attention, self.dense = SwinSelfAttention(width, heads, window), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def dropped(self, input: Tensor) -> Tensor:
        if self.drop_path == 0.0:
            return input
        keep_prob = 1 - self.drop_path
        random_tensor = keep_prob + torch.rand(input.shape[0], 1, 1, dtype=input.dtype, device=input.device)
        random_tensor.floor_()
        return input.div(keep_prob) * random_tensor

    def attention(self, hidden_states: Tensor, mask: Optional[Tensor]) -> Tensor:
        return self.dense(self.self_attention(hidden_states, mask))

    def forward(self, hidden_states: Tensor) -> Tensor:
        batch, _, channels = hidden_states.size()
        side, window = self.side, self.window
        shortcut = hidden_states
        hidden_states = self.layernorm_before(hidden_states)
        hidden_states = hidden_states.view(batch, side, side, channels)
        hidden_states = F.pad(hidden_states, (0, 0, 0, 0, 0, 0))
        if self.shift > 0:
            shifted = torch.roll(hidden_states, shifts=(-self.shift, -self.shift), dims=(1, 2))
        else:
            shifted = hidden_states
        windows = window_partition(shifted, window).view(-1, window * window, channels)
        count = (side // window) ** 2
        mask = None
        if self.shift > 0:
            mask = torch.zeros(count, window**2, window**2, dtype=hidden_states.dtype, device=hidden_states.device)
        attention_output = self.attention(windows, mask)
        attention_windows = attention_output.view(-1, window, window, channels)
        shifted_windows = window_reverse(attention_windows, window, side, side)
        if self.shift > 0:
            attention_windows = torch.roll(shifted_windows, shifts=(self.shift, self.shift), dims=(1, 2))
        else:
            attention_windows = shifted_windows
        attention_windows = attention_windows.view(batch, side * side, channels)
        hidden_states = shortcut + self.dropped(attention_windows)
        layer_output = self.layernorm_after(hidden_states)
        layer_output = F.gelu(self.fc1(layer_output))
        layer_output = hidden_states + self.fc2(layer_output)
        return layer_output


class SwinPatchMerging(nn.Module):
    def __init__(self, width: int, side: int) -> None:
        super().__init__()
        self.side = side
        self.norm, self.reduction = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, input_feature: Tensor) -> Tensor:
        batch, _, channels = input_feature.shape
        input_feature = input_feature.view(batch, self.side, self.side, channels)
        parts = [input_feature[:, row::2, column::2, :] for column in (0, 1) for row in (0, 1)]
        input_feature = torch.cat(parts, -1)
        input_feature = input_feature.view(batch, -1, 4 * channels)
        return self.reduction(self.norm(input_feature))


class SwinStage(nn.Module):
    """Blocks and what halves the image after them; hands out what it read, too. Checkpointed as one."""

    def __init__(self, blocks: list[SwinLayer], downsample: Optional[SwinPatchMerging]) -> None:
        super().__init__()
        self.blocks, self.downsample = nn.ModuleList(blocks), downsample

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
        for block in self.blocks:
            layer_outputs = (block(hidden_states),)
            hidden_states = layer_outputs[0]
        hidden_states_before_downsampling = hidden_states
        if self.downsample is not None:
            hidden_states = self.downsample(hidden_states_before_downsampling)
        return hidden_states, hidden_states_before_downsampling


class SwinForImageClassification(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, side, window = config["embed_dim"], config["image_size"] // config["patch_size"], config["window_size"]
        self.projection = nn.Conv2d(3, width, config["patch_size"], config["patch_size"])
        self.norm = nn.LayerNorm(width)
        count = sum(config["depths"])
        rates = [config["drop_path_rate"] * at / (count - 1) for at in range(count)]
        self.stages = nn.ModuleList()
        for depth, heads in zip(config["depths"], config["num_heads"]):
            size = min(window, side)
            blocks = [
                SwinLayer(width, heads, size, side, size // 2 if at % 2 and side > size else 0, rates.pop(0))
                for at in range(depth)
            ]
            last = len(self.stages) + 1 == len(config["depths"])
            self.stages.append(SwinStage(blocks, None if last else SwinPatchMerging(width, side)))
            if not last:
                width, side = 2 * width, side // 2
        self.layernorm, self.classifier = nn.LayerNorm(width), nn.Linear(width, config["num_labels"])

    def encoder(self, hidden_states: Tensor) -> Tensor:
        for stage in self.stages:
            if self.checkpointing:
                layer_outputs = checkpoint(stage.__call__, hidden_states, use_reentrant=False)
            else:
                layer_outputs = stage(hidden_states)
            hidden_states = layer_outputs[0]
        return hidden_states

    def forward(self, pixel_values: Tensor, labels: Tensor) -> Outputs:
        hidden_states = self.norm(self.projection(pixel_values).flatten(2).transpose(1, 2))
        encoder_outputs = self.encoder(hidden_states)
        sequence_output = self.layernorm(encoder_outputs)
        pooled_output = F.adaptive_avg_pool1d(sequence_output.transpose(1, 2), 1)
        pooled_output = torch.flatten(pooled_output, 1)
        logits = self.classifier(pooled_output)
        loss = F.cross_entropy(logits, labels)
        return Outputs(loss=loss, logits=logits)


class DeiTForImageClassification(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, side, patch = config["hidden_size"], config["image_size"], config["patch_size"]
        self.projection = nn.Conv2d(3, width, patch, patch)
        self.cls_token, self.distillation_token = (nn.Parameter(torch.zeros(1, 1, width)) for _ in range(2))
        self.position_embeddings = nn.Parameter(torch.zeros(1, (side // patch) ** 2 + 2, width))
        self.layers = nn.ModuleList(ViTLayer(config) for _ in range(config["num_hidden_layers"]))
        self.layernorm, self.classifier = nn.LayerNorm(width), nn.Linear(width, config["num_labels"])

    def forward(self, pixel_values: Tensor, labels: Tensor) -> Outputs:
        embeddings = self.projection(pixel_values).flatten(2).transpose(1, 2)
        cls_tokens = self.cls_token.expand(pixel_values.shape[0], -1, -1)
        distillation_tokens = self.distillation_token.expand(pixel_values.shape[0], -1, -1)
        embeddings = torch.cat((cls_tokens, distillation_tokens, embeddings), dim=1)
        embeddings = embeddings + self.position_embeddings
        hidden_states = self.run_blocks(self.layers, embeddings)
        sequence_output = self.layernorm(hidden_states)
        logits = self.classifier(sequence_output[:, 0, :])
        loss = F.cross_entropy(logits, labels)
        return Outputs(loss=loss, logits=logits)


BUILDERS: dict[str, Any] = {
    "clip": CLIPModel,
    "whisper": WhisperForConditionalGeneration,
    "swin": SwinForImageClassification,
    "deit": DeiTForImageClassification,
}
