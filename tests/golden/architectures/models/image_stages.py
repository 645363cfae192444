"""Image models in stages as transformers 5.5 calls them: ConvNeXt, ConvNeXt V2, ResNet and SegFormer."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .layers import Config, Outputs
from .vision_language import dropped_path


class ImageNorm(nn.LayerNorm):
    """ConvNextLayerNorm of [N, C, H, W]."""

    def forward(self, features: Tensor) -> Tensor:
        features = features.permute(0, 2, 3, 1)
        features = super().forward(features)
        return features.permute(0, 3, 1, 2)


class ResponseNorm(nn.Module):
    """ConvNextV2GRN."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = (nn.Parameter(torch.zeros(1, 1, 1, width)) for _ in range(2))

    def forward(self, hidden_states: Tensor) -> Tensor:
        global_features = torch.linalg.vector_norm(hidden_states, ord=2, dim=(1, 2), keepdim=True)
        norm_features = global_features / (global_features.mean(dim=-1, keepdim=True) + 1e-6)
        return self.weight * (hidden_states * norm_features) + self.bias + hidden_states


class ConvNextLayer(nn.Module):
    def __init__(self, width: int, second: bool, drop_path: float) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.layernorm = nn.LayerNorm(width)
        self.pwconv1, self.pwconv2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.grn = ResponseNorm(4 * width) if second else None
        self.scale = None if second else nn.Parameter(torch.ones(width))
        self.drop_path = drop_path

    def forward(self, features: Tensor) -> Tensor:
        residual = features
        features = self.dwconv(features)
        features = features.permute(0, 2, 3, 1)
        features = self.layernorm(features)
        features = self.pwconv1(features)
        features = F.gelu(features)
        if self.grn is not None:
            features = self.grn(features)
        features = self.pwconv2(features)
        if self.scale is not None:
            features = self.scale * features
        features = features.permute(0, 3, 1, 2)
        return residual + dropped_path(features, self.drop_path)


class ImageStack(nn.Module):
    checkpointing = False

    def call(self, block: nn.Module, hidden_states: Tensor, *sizes: int) -> Tensor:
        if self.checkpointing:
            return checkpoint(block.__call__, hidden_states, *sizes, use_reentrant=False)
        return block(hidden_states, *sizes)


class ConvNextForImageClassification(ImageStack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        widths, depths = config["hidden_sizes"], config["depths"]
        second = config["model_type"] == "convnextv2"
        self.patch_embeddings = nn.Conv2d(3, widths[0], config["patch_size"], config["patch_size"])
        self.embedding_norm = ImageNorm(widths[0])
        self.downsampling = nn.ModuleList(
            nn.Sequential(ImageNorm(read), nn.Conv2d(read, width, 2, 2)) for read, width in zip(widths, widths[1:])
        )
        rates = [config["drop_path_rate"] * at / (sum(depths) - 1) for at in range(sum(depths))]
        self.stages = nn.ModuleList(
            nn.ModuleList(ConvNextLayer(width, second, rates.pop(0)) for _ in range(depth))
            for width, depth in zip(widths, depths)
        )
        self.layernorm, self.classifier = nn.LayerNorm(widths[-1]), nn.Linear(widths[-1], config["num_labels"])

    def encoder(self, hidden_states: Tensor) -> Tensor:
        for at, stage in enumerate(self.stages):
            if at > 0:
                for layer in self.downsampling[at - 1]:
                    hidden_states = layer(hidden_states)
            for block in stage:
                hidden_states = self.call(block, hidden_states)
        return hidden_states

    def forward(self, pixel_values: Tensor, labels: Tensor) -> Outputs:
        embedding_output = self.embedding_norm(self.patch_embeddings(pixel_values))
        last_hidden_state = self.encoder(embedding_output)
        pooled_output = self.layernorm(last_hidden_state.mean([-2, -1]))
        logits = self.classifier(pooled_output)
        return Outputs(loss=F.cross_entropy(logits, labels), logits=logits)


class ResNetConvLayer(nn.Module):
    def __init__(self, read: int, width: int, kernel: int, stride: int, active: bool) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(read, width, kernel, stride, kernel // 2, bias=False)
        self.normalization = nn.BatchNorm2d(width)
        self.activation = nn.ReLU() if active else nn.Identity()

    def forward(self, hidden_state: Tensor) -> Tensor:
        hidden_state = self.convolution(hidden_state)
        hidden_state = self.normalization(hidden_state)
        return self.activation(hidden_state)


class ResNetBottleNeckLayer(nn.Module):
    def __init__(self, read: int, width: int, stride: int) -> None:
        super().__init__()
        inner = width // 4
        projects = read != width or stride != 1
        self.shortcut = ResNetConvLayer(read, width, 1, stride, False) if projects else nn.Identity()
        self.layer = nn.Sequential(
            ResNetConvLayer(read, inner, 1, 1, True),
            ResNetConvLayer(inner, inner, 3, stride, True),
            ResNetConvLayer(inner, width, 1, 1, False),
        )

    def forward(self, hidden_state: Tensor) -> Tensor:
        residual = hidden_state
        hidden_state = self.layer(hidden_state)
        residual = self.shortcut(residual)
        hidden_state += residual
        return F.relu(hidden_state)


class ResNetForImageClassification(ImageStack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        widths = [config["embedding_size"], *config["hidden_sizes"]]
        self.embedder, self.pooler = ResNetConvLayer(3, widths[0], 7, 2, True), nn.MaxPool2d(3, 2, 1)
        blocks = []
        for at, depth in enumerate(config["depths"]):
            for index in range(depth):
                read = widths[at + (1 if index else 0)]
                blocks.append(ResNetBottleNeckLayer(read, widths[at + 1], 2 if at and not index else 1))
        self.blocks = nn.ModuleList(blocks)
        self.classifier = nn.Linear(widths[-1], config["num_labels"])

    def encoder(self, hidden_state: Tensor) -> Tensor:
        for block in self.blocks:
            hidden_state = self.call(block, hidden_state)
        return hidden_state

    def forward(self, pixel_values: Tensor, labels: Tensor) -> Outputs:
        last_hidden_state = self.encoder(self.pooler(self.embedder(pixel_values)))
        pooled_output = F.adaptive_avg_pool2d(last_hidden_state, (1, 1))
        logits = self.classifier(torch.flatten(pooled_output, 1))
        return Outputs(loss=F.cross_entropy(logits, labels), logits=logits)


class EfficientSelfAttention(nn.Module):
    def __init__(self, width: int, heads: int, reduction: int) -> None:
        super().__init__()
        self.heads, self.each = heads, width // heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.sr = nn.Conv2d(width, width, reduction, reduction) if reduction > 1 else None
        self.layer_norm = nn.LayerNorm(width) if reduction > 1 else None

    def split(self, states: Tensor) -> Tensor:
        return states.view(*states.shape[:2], self.heads, self.each).permute(0, 2, 1, 3)

    def forward(self, hidden_states: Tensor, side: int) -> Tensor:
        batch, length, width = hidden_states.shape
        query_layer = self.split(self.query(hidden_states))
        if self.sr is not None:
            hidden_states = hidden_states.permute(0, 2, 1).reshape(batch, width, side, side)
            hidden_states = self.sr(hidden_states)
            hidden_states = hidden_states.reshape(batch, width, -1).permute(0, 2, 1)
            hidden_states = self.layer_norm(hidden_states)
        key_layer, value_layer = self.split(self.key(hidden_states)), self.split(self.value(hidden_states))
        attention_scores = torch.matmul(query_layer, key_layer.transpose(-1, -2))
        attention_scores = attention_scores / self.each**0.5
        attention_probs = F.softmax(attention_scores, dim=-1)
        context_layer = torch.matmul(attention_probs, value_layer)
        context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
        return context_layer.view(batch, length, width)


class SegformerLayer(nn.Module):
    def __init__(self, width: int, heads: int, reduction: int, inner: int, drop_path: float) -> None:
        super().__init__()
        self.layer_norm_1, self.layer_norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.dense = EfficientSelfAttention(width, heads, reduction), nn.Linear(width, width)
        self.dense1, self.dense2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.dwconv = nn.Conv2d(inner, inner, 3, 1, 1, groups=inner)
        self.drop_path = drop_path

    def attend(self, hidden_states: Tensor, side: int) -> Tensor:
        return self.dense(self.attention(hidden_states, side))

    def convolved(self, hidden_states: Tensor, side: int) -> Tensor:
        batch, _, width = hidden_states.shape
        hidden_states = hidden_states.transpose(1, 2).view(batch, width, side, side)
        hidden_states = self.dwconv(hidden_states)
        return hidden_states.flatten(2).transpose(1, 2)

    def mlp(self, hidden_states: Tensor, side: int) -> Tensor:
        hidden_states = self.dense1(hidden_states)
        hidden_states = self.convolved(hidden_states, side)
        hidden_states = F.gelu(hidden_states)
        return self.dense2(hidden_states)

    def forward(self, hidden_states: Tensor, side: int) -> Tensor:
        attention_output = self.attend(self.layer_norm_1(hidden_states), side)
        attention_output = dropped_path(attention_output, self.drop_path)
        hidden_states = attention_output + hidden_states
        mlp_output = self.mlp(self.layer_norm_2(hidden_states), side)
        mlp_output = dropped_path(mlp_output, self.drop_path)
        layer_output = mlp_output + hidden_states
        return layer_output


class SegformerEncoder(ImageStack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        widths, depths = [3, *config["hidden_sizes"]], config["depths"]
        sizes = zip(config["patch_sizes"], config["strides"])
        self.cuts = nn.ModuleList(
            nn.Conv2d(widths[at], widths[at + 1], patch, step, patch // 2) for at, (patch, step) in enumerate(sizes)
        )
        self.cut_norms = nn.ModuleList(nn.LayerNorm(width) for width in widths[1:])
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in widths[1:])
        rates = [config["drop_path_rate"] * at / (sum(depths) - 1) for at in range(sum(depths))]
        self.stages = nn.ModuleList()
        for at, depth in enumerate(depths):
            width, heads = widths[at + 1], config["num_attention_heads"][at]
            inner, reduction = config["mlp_ratios"][at] * width, config["sr_ratios"][at]
            blocks = (SegformerLayer(width, heads, reduction, inner, rates.pop(0)) for _ in range(depth))
            self.stages.append(nn.ModuleList(blocks))

    def forward(self, pixel_values: Tensor) -> tuple[Tensor, ...]:
        left: tuple[Tensor, ...] = ()
        hidden_states = pixel_values
        for cut, cut_norm, stage, norm in zip(self.cuts, self.cut_norms, self.stages, self.norms):
            embeddings = cut(hidden_states)
            side = embeddings.shape[2]
            embeddings = embeddings.flatten(2).transpose(1, 2)
            hidden_states = cut_norm(embeddings)
            del embeddings
            for block in stage:
                hidden_states = self.call(block, hidden_states, side)
            hidden_states = norm(hidden_states)
            hidden_states = hidden_states.reshape(len(pixel_values), side, side, -1).permute(0, 3, 1, 2).contiguous()
            left = (*left, hidden_states)
        return left


class SegformerDecodeHead(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        widths, joined = config["hidden_sizes"], config["decoder_hidden_size"]
        self.linear_c = nn.ModuleList(nn.Linear(width, joined) for width in widths)
        self.linear_fuse = nn.Conv2d(joined * len(widths), joined, 1, bias=False)
        self.batch_norm = nn.BatchNorm2d(joined)
        self.classifier = nn.Conv2d(joined, config["num_labels"], 1)

    def forward(self, encoder_hidden_states: tuple[Tensor, ...]) -> Tensor:
        all_hidden_states: tuple[Tensor, ...] = ()
        for hidden, linear in zip(encoder_hidden_states, self.linear_c):
            batch, _, height, width = hidden.shape
            hidden = linear(hidden.flatten(2).transpose(1, 2))
            hidden = hidden.permute(0, 2, 1)
            hidden = hidden.reshape(batch, -1, height, width)
            hidden = F.interpolate(hidden, size=encoder_hidden_states[0].size()[2:], mode="bilinear", align_corners=False)
            all_hidden_states += (hidden,)
        hidden_states = self.linear_fuse(torch.cat(all_hidden_states[::-1], dim=1))
        hidden_states = self.batch_norm(hidden_states)
        hidden_states = F.relu(hidden_states)
        hidden_states = F.dropout(hidden_states, 0.1)
        return self.classifier(hidden_states)


class SegformerForSemanticSegmentation(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.segformer, self.decode_head = SegformerEncoder(config), SegformerDecodeHead(config)

    def forward(self, pixel_values: Tensor, labels: Tensor) -> Outputs:
        encoder_hidden_states = self.segformer(pixel_values)
        logits = self.decode_head(encoder_hidden_states)
        upsampled_logits = F.interpolate(logits, size=labels.shape[-2:], mode="bilinear", align_corners=False)
        loss = F.cross_entropy(upsampled_logits, labels, ignore_index=255)
        return Outputs(loss=loss, logits=logits)


BUILDERS: dict[str, Any] = {
    "convnext": ConvNextForImageClassification,
    "convnextv2": ConvNextForImageClassification,
    "resnet": ResNetForImageClassification,
    "segformer": SegformerForSemanticSegmentation,
}
