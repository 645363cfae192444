"""XLNet: relative attention written out in einsums, on tensors whose first axis is the tokens."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .encoders import Stack
from .layers import ACTIVATIONS, Config, Outputs


def bare(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape))


class RelativeAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, heads, each = config["d_model"], config["n_head"], config["d_head"]
        self.q, self.k, self.v, self.o, self.r = (bare(width, heads, each) for _ in range(5))
        self.r_r_bias, self.r_s_bias, self.r_w_bias = (bare(heads, each) for _ in range(3))
        self.seg_embed = bare(2, heads, each)
        self.layer_norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout, self.scale = nn.Dropout(config["dropout"]), 1 / each**0.5

    @staticmethod
    def rel_shift_bnij(x: Tensor, klen: int) -> Tensor:
        x_size = x.shape
        x = x.reshape(x_size[0], x_size[1], x_size[3], x_size[2])
        x = x[:, :, 1:, :]
        x = x.reshape(x_size[0], x_size[1], x_size[2], x_size[3] - 1)
        x = torch.index_select(x, 3, torch.arange(klen, device=x.device, dtype=torch.long))
        return x

    def rel_attn_core(
        self, q_head: Tensor, k_head_h: Tensor, v_head_h: Tensor, k_head_r: Tensor, seg_mat: Tensor, attn_mask: Tensor
    ) -> Tensor:
        ac = torch.einsum("ibnd,jbnd->bnij", q_head + self.r_w_bias, k_head_h)
        bd = torch.einsum("ibnd,jbnd->bnij", q_head + self.r_r_bias, k_head_r)
        bd = self.rel_shift_bnij(bd, klen=ac.shape[3])
        ef = torch.einsum("ibnd,snd->ibns", q_head + self.r_s_bias, self.seg_embed)
        ef = torch.einsum("ijbs,ibns->bnij", seg_mat, ef)
        attn_score = (ac + bd + ef) * self.scale
        attn_score = attn_score - 1e30 * torch.einsum("ijbn->bnij", attn_mask)
        attn_prob = F.softmax(attn_score, dim=3)
        attn_prob = self.dropout(attn_prob)
        attn_vec = torch.einsum("bnij,jbnd->ibnd", attn_prob, v_head_h)
        return attn_vec

    def post_attention(self, h: Tensor, attn_vec: Tensor) -> Tensor:
        attn_out = torch.einsum("ibnd,hnd->ibh", attn_vec, self.o)
        attn_out = self.dropout(attn_out)
        attn_out = attn_out + h
        output = self.layer_norm(attn_out)
        return output

    def forward(self, h: Tensor, attn_mask_h: Tensor, r: Tensor, seg_mat: Tensor) -> Tensor:
        q_head_h = torch.einsum("ibh,hnd->ibnd", h, self.q)
        k_head_h = torch.einsum("ibh,hnd->ibnd", h, self.k)
        v_head_h = torch.einsum("ibh,hnd->ibnd", h, self.v)
        k_head_r = torch.einsum("ibh,hnd->ibnd", r.type(self.r.dtype), self.r)
        attn_vec = self.rel_attn_core(q_head_h, k_head_h, v_head_h, k_head_r, seg_mat, attn_mask_h)
        output_h = self.post_attention(h, attn_vec)
        return output_h


class FeedForward(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner = config["d_model"], config["d_inner"]
        self.layer_norm = nn.LayerNorm(width, eps=1e-12)
        self.layer_1, self.layer_2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.dropout, self.activation_function = nn.Dropout(config["dropout"]), ACTIVATIONS[config["ff_activation"]]

    def forward(self, inp: Tensor) -> Tensor:
        output = inp
        output = self.layer_1(output)
        output = self.activation_function(output)
        output = self.dropout(output)
        output = self.layer_2(output)
        output = self.dropout(output)
        output = self.layer_norm(output + inp)
        return output


class XLNetLayer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.rel_attn, self.ff = RelativeAttention(config), FeedForward(config)

    def forward(self, output_h: Tensor, attn_mask_h: Tensor, r: Tensor, seg_mat: Tensor) -> Tensor:
        output_h = self.rel_attn(output_h, attn_mask_h, r, seg_mat)
        output_h = self.ff(output_h)
        return output_h


class XLNetModel(Stack):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.d_model = config["d_model"]
        self.mask_emb = bare(1, 1, self.d_model)
        self.word_embedding = nn.Embedding(config["vocab_size"], self.d_model)
        self.layer = nn.ModuleList(XLNetLayer(config) for _ in range(config["n_layer"]))
        self.dropout = nn.Dropout(config["dropout"])

    def relative_positional_encoding(self, qlen: int, bsz: int) -> Tensor:
        """On the CPU, as there."""
        freq_seq = torch.arange(0, self.d_model, 2.0, dtype=torch.int64).float()
        inv_freq = 1 / torch.pow(10000, (freq_seq / self.d_model))
        pos_seq = torch.arange(qlen, -qlen, -1.0, dtype=torch.int64).float()
        sinusoid_inp = torch.einsum("i,d->id", pos_seq, inv_freq)
        pos_emb = torch.cat([torch.sin(sinusoid_inp), torch.cos(sinusoid_inp)], dim=-1)
        return pos_emb[:, None, :].expand(-1, bsz, -1)

    def masks(self, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        dtype = self.mask_emb.dtype
        input_mask = 1.0 - attention_mask
        attn_mask = input_mask[None][:, :, :, None]
        attn_mask = (attn_mask > 0).to(dtype)
        non_tgt_mask = -torch.eye(attention_mask.shape[0]).to(attn_mask)
        non_tgt_mask = ((attn_mask + non_tgt_mask[:, :, None, None]) > 0).to(attn_mask)
        seg_mat = (token_type_ids[:, None] != token_type_ids[None, :]).long()
        seg_mat = F.one_hot(seg_mat, num_classes=2).to(dtype)
        return non_tgt_mask, seg_mat

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        input_ids, attention_mask, token_type_ids = (
            each.transpose(0, 1).contiguous() for each in (input_ids, attention_mask, token_type_ids)
        )
        qlen, bsz = input_ids.shape
        non_tgt_mask, seg_mat = self.masks(attention_mask, token_type_ids)
        word_emb_k = self.word_embedding(input_ids)
        output_h = self.dropout(word_emb_k)
        pos_emb = self.relative_positional_encoding(qlen, bsz)
        pos_emb = pos_emb.to(output_h.device)
        pos_emb = self.dropout(pos_emb)
        output_h = self.run_blocks(self.layer, output_h, non_tgt_mask, pos_emb, seg_mat)
        output = self.dropout(output_h)
        return output.permute(1, 0, 2).contiguous()


class XLNetLMHeadModel(nn.Module):
    """labels: one a token."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.transformer = XLNetModel(config)
        self.lm_loss = nn.Linear(config["d_model"], config["vocab_size"])
        self.lm_loss.weight = self.transformer.word_embedding.weight

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        hidden_states = self.transformer(input_ids, attention_mask, token_type_ids)
        logits = self.lm_loss(hidden_states)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))
        return Outputs(loss=loss, logits=logits)


class XLNetForSequenceClassification(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config["d_model"]
        self.transformer = XLNetModel(config)
        self.summary, self.last_dropout = nn.Linear(width, width), nn.Dropout(config["summary_last_dropout"])
        self.logits_proj = nn.Linear(width, 2)

    def sequence_summary(self, hidden_states: Tensor) -> Tensor:
        output = hidden_states[:, -1]
        output = self.summary(output)
        output = torch.tanh(output)
        output = self.last_dropout(output)
        return output

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Outputs:
        output = self.sequence_summary(self.transformer(input_ids, attention_mask, token_type_ids))
        logits = self.logits_proj(output)
        loss = F.cross_entropy(logits.view(-1, 2), labels[:, 0])
        return Outputs(loss=loss, logits=logits)


def build(config: dict[str, Any]) -> nn.Module:
    classifies = config["architectures"] == ["XLNetForSequenceClassification"]
    return XLNetForSequenceClassification(config) if classifies else XLNetLMHeadModel(config)


BUILDERS: dict[str, Any] = {"xlnet": build}
