"""GraniteMoe: Granite's decoder with experts, whose weights are one tensor. Which tokens an expert gets depends on the
data, which a recording does not have: here each gets as many."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .layers import Cache, Config, RMSNorm
from .llama import Attention, LlamaForCausalLM


class LoopedExperts(nn.Module):
    """transformers 4.55 to 4.57, models/gpt_oss/modeling_gpt_oss.py: one expert after the other, whose weights are taken
    out of all; backward makes zeros of all for each."""

    def forward(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        next_states = torch.zeros_like(hidden_states)
        rows = top_k_index.numel() // self.experts
        for expert in range(self.experts):
            token_idx = torch.zeros(rows, dtype=torch.int64, device=hidden_states.device)
            current_state = hidden_states[token_idx]
            gate_up = current_state @ self.gate_up_proj[expert] + self.gate_up_proj_bias[expert]
            gated_output = self.gated(gate_up)
            out = gated_output @ self.down_proj[expert] + self.down_proj_bias[expert]
            weighted_output = out * top_k_weights[token_idx, 0, None]
            next_states.index_add_(0, token_idx, weighted_output.to(hidden_states.dtype))
        return next_states


class ParallelExperts(nn.Module):
    def __init__(self, experts: int, width_in: int, width_out: int) -> None:
        super().__init__()
        self.weight, self.experts = nn.Parameter(torch.zeros(experts, width_out, width_in)), experts

    def forward(self, inputs: Tensor, expert_size: list[int]) -> Tensor:
        input_list = inputs.split(expert_size, dim=0)
        output_list = []
        for i in range(self.experts):
            output_list.append(F.linear(input_list[i], self.weight[i]))
        results = torch.cat(output_list, dim=0)
        return results


class TopKGating(nn.Module):
    def __init__(self, width: int, experts: int, per_token: int) -> None:
        super().__init__()
        self.experts, self.top_k = experts, per_token
        self.layer = nn.Linear(width, experts, bias=False)

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, list[int], Tensor]:
        logits = self.layer(hidden_states).float()
        top_k_logits, top_k_indices = logits.topk(self.top_k, dim=1)
        top_k_gates = torch.softmax(top_k_logits, dim=1).type_as(hidden_states)
        zeros = torch.zeros(
            [top_k_gates.size(0), self.experts], dtype=top_k_gates.dtype, device=top_k_gates.device
        )
        gates = zeros.scatter(1, top_k_indices, 1)
        gates.long().sum(0)
        expert_size = [top_k_gates.size(0) * self.top_k // self.experts] * self.experts
        top_k_experts = top_k_indices.flatten()
        _, index_sorted_experts = top_k_experts.sort(0)
        batch_index = index_sorted_experts.div(self.top_k, rounding_mode="trunc")
        top_k_gates = top_k_gates.flatten()
        batch_gates = top_k_gates[index_sorted_experts]
        return batch_index, batch_gates, expert_size, logits


class MixtureOfExperts(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.width, inner = config["hidden_size"], config["intermediate_size"]
        experts = config["num_local_experts"]
        self.input_linear = ParallelExperts(experts, self.width, 2 * inner)
        self.output_linear = ParallelExperts(experts, inner, self.width)
        self.router = TopKGating(self.width, experts, config["num_experts_per_tok"])

    def forward(self, layer_input: Tensor) -> tuple[Tensor, Tensor]:
        bsz, length, emb_size = layer_input.size()
        layer_input = layer_input.reshape(-1, emb_size)
        batch_index, batch_gates, expert_size, router_logits = self.router(layer_input)
        expert_inputs = layer_input[batch_index]
        hidden_states = self.input_linear(expert_inputs, expert_size)
        chunked_hidden_states = hidden_states.chunk(2, dim=-1)
        hidden_states = F.silu(chunked_hidden_states[0]) * chunked_hidden_states[1]
        expert_outputs = self.output_linear(hidden_states, expert_size)
        expert_outputs = expert_outputs * batch_gates[:, None]
        zeros = torch.zeros((bsz * length, self.width), dtype=expert_outputs.dtype, device=expert_outputs.device)
        layer_output = zeros.index_add(0, batch_index, expert_outputs)
        layer_output = layer_output.view(bsz, length, self.width)
        return layer_output, router_logits


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self_attn, self.block_sparse_moe = Attention(config), MixtureOfExperts(config)
        self.input_layernorm = RMSNorm(config["hidden_size"])
        self.post_attention_layernorm = RMSNorm(config["hidden_size"])
        self.multiplier = config["residual_multiplier"]

    def forward(self, hidden_states: Tensor, cache: Optional[Cache], cos: Tensor, sin: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = self.self_attn(hidden_states, cache, cos, sin)
        hidden_states = residual + hidden_states * self.multiplier
        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states, router_logits = self.block_sparse_moe(hidden_states)
        hidden_states = residual + hidden_states * self.multiplier
        return hidden_states


class GraniteMoeForCausalLM(LlamaForCausalLM):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.model.layers = nn.ModuleList(Block(config) for _ in range(config["num_hidden_layers"]))


BUILDERS: dict[str, Any] = {"granitemoe": GraniteMoeForCausalLM}
