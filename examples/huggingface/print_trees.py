#!/usr/bin/env python3
"""Print the module trees of HuggingFace models as print(model) does, without transformers.

A tree follows from a model's published configuration and from how its class is built (transformers 4.51, PyTorch 2.x,
default attention). Without arguments, brings models/trees up to date; with --check, only says what differs.

    python3 examples/huggingface/print_trees.py                # write all trees
    python3 examples/huggingface/print_trees.py --check        # for tests
    python3 examples/huggingface/print_trees.py gpt2           # print one
"""

import argparse
import pathlib
import sys

TREES = pathlib.Path(__file__).resolve().parents[2] / "models" / "trees"


class Module:
    """A module with children: {name: Module or the text of a leaf}."""

    def __init__(self, class_name, /, **children):
        self.class_name = class_name
        self.children = children

    def lines(self):
        """As torch.nn.Module.__repr__ has it."""
        yield self.class_name + "("
        for name, child in self.children.items():
            below = [child] if isinstance(child, str) else list(child.lines())
            yield "  (" + name + "): " + below[0]
            for line in below[1:]:
                yield "  " + line
        yield ")"


class Repeated:
    """A ModuleList; equal neighbours are folded, as torch.nn.ModuleList.__repr__ does since 2.0."""

    def __init__(self, *modules):
        self.modules = [m if isinstance(m, str) else "\n".join(m.lines()) for m in modules]

    def lines(self):
        yield "ModuleList("
        first = 0
        while first < len(self.modules):
            last = first
            while last + 1 < len(self.modules) and self.modules[last + 1] == self.modules[first]:
                last += 1
            count = last - first + 1
            name = f"({first})" if count == 1 else f"({first}-{last})"
            times = "" if count == 1 else f"{count} x "
            text = self.modules[first].split("\n")
            yield f"  {name}: {times}{text[0]}"
            for line in text[1:]:
                yield "  " + line
            first = last + 1
        yield ")"


def linear(inputs, outputs, bias=True):
    return f"Linear(in_features={inputs}, out_features={outputs}, bias={bias})"


def conv1d(outputs, inputs):
    return f"Conv1D(nf={outputs}, nx={inputs})"


def embedding(rows, width, padding=None, class_name="Embedding"):
    padded = "" if padding is None else f", padding_idx={padding}"
    return f"{class_name}({rows}, {width}{padded})"


def layer_norm(width, eps="1e-05"):
    return f"LayerNorm(({width},), eps={eps}, elementwise_affine=True)"


def dropout(p):
    return f"Dropout(p={p}, inplace=False)"


def gpt2(width, layers, vocabulary=50257, positions=1024):
    block = Module(
        "GPT2Block",
        ln_1=layer_norm(width),
        attn=Module("GPT2Attention", c_attn=conv1d(3 * width, width), c_proj=conv1d(width, width),
                    attn_dropout=dropout(0.1), resid_dropout=dropout(0.1)),
        ln_2=layer_norm(width),
        mlp=Module("GPT2MLP", c_fc=conv1d(4 * width, width), c_proj=conv1d(width, 4 * width),
                   act="NewGELUActivation()", dropout=dropout(0.1)))
    body = Module("GPT2Model", wte=embedding(vocabulary, width), wpe=embedding(positions, width), drop=dropout(0.1),
                  h=Repeated(*[block] * layers), ln_f=layer_norm(width))
    return Module("GPT2LMHeadModel", transformer=body, lm_head=linear(width, vocabulary, False))


def gpt_neo(width, layers, vocabulary=50257, positions=2048):
    projections = {name: linear(width, width, False) for name in ("k_proj", "v_proj", "q_proj")}
    attention = Module("GPTNeoSelfAttention", attn_dropout=dropout(0.0), resid_dropout=dropout(0.0), **projections,
                       out_proj=linear(width, width))
    block = Module(
        "GPTNeoBlock",
        ln_1=layer_norm(width),
        attn=Module("GPTNeoAttention", attention=attention),
        ln_2=layer_norm(width),
        mlp=Module("GPTNeoMLP", c_fc=linear(width, 4 * width), c_proj=linear(4 * width, width),
                   act="NewGELUActivation()", dropout=dropout(0.0)))
    body = Module("GPTNeoModel", wte=embedding(vocabulary, width), wpe=embedding(positions, width), drop=dropout(0.0),
                  h=Repeated(*[block] * layers), ln_f=layer_norm(width))
    return Module("GPTNeoForCausalLM", transformer=body, lm_head=linear(width, vocabulary, False))


def opt(width, layers, vocabulary=50272, positions=2048):
    projections = {name: linear(width, width) for name in ("k_proj", "v_proj", "q_proj", "out_proj")}
    layer = Module("OPTDecoderLayer", self_attn=Module("OPTSdpaAttention", **projections), activation_fn="ReLU()",
                   self_attn_layer_norm=layer_norm(width), fc1=linear(width, 4 * width), fc2=linear(4 * width, width),
                   final_layer_norm=layer_norm(width))
    decoder = Module("OPTDecoder", embed_tokens=embedding(vocabulary, width, 1),
                     embed_positions=embedding(positions + 2, width, class_name="OPTLearnedPositionalEmbedding"),
                     final_layer_norm=layer_norm(width), layers=Repeated(*[layer] * layers))
    return Module("OPTForCausalLM", model=Module("OPTModel", decoder=decoder),
                  lm_head=linear(width, vocabulary, False))


def bert_layer(width, attention, prefix, eps):
    projections = {name: linear(width, width) for name in ("query", "key", "value")}
    return Module(
        prefix + "Layer",
        attention=Module(prefix + "Attention",
                         self=Module(attention, **projections, dropout=dropout(0.1)),
                         output=Module(prefix + "SelfOutput", dense=linear(width, width),
                                       LayerNorm=layer_norm(width, eps), dropout=dropout(0.1))),
        intermediate=Module(prefix + "Intermediate", dense=linear(width, 4 * width),
                            intermediate_act_fn="GELUActivation()"),
        output=Module(prefix + "Output", dense=linear(4 * width, width), LayerNorm=layer_norm(width, eps),
                      dropout=dropout(0.1)))


def bert_body(prefix, width, layers, vocabulary, positions, types, padding, eps):
    embeddings = Module(
        prefix + "Embeddings",
        word_embeddings=embedding(vocabulary, width, padding),
        position_embeddings=embedding(positions, width, padding if prefix == "Roberta" else None),
        token_type_embeddings=embedding(types, width),
        LayerNorm=layer_norm(width, eps), dropout=dropout(0.1))
    layer = bert_layer(width, prefix + "SdpaSelfAttention", prefix, eps)
    return Module(prefix + "Model", embeddings=embeddings,
                  encoder=Module(prefix + "Encoder", layer=Repeated(*[layer] * layers)))


def bert(width, layers, vocabulary):
    body = bert_body("Bert", width, layers, vocabulary, 512, 2, 0, "1e-12")
    transform = Module("BertPredictionHeadTransform", dense=linear(width, width),
                       transform_act_fn="GELUActivation()", LayerNorm=layer_norm(width, "1e-12"))
    head = Module("BertLMPredictionHead", transform=transform, decoder=linear(width, vocabulary))
    return Module("BertForMaskedLM", bert=body, cls=Module("BertOnlyMLMHead", predictions=head))


def roberta(width, layers, vocabulary=50265):
    head = Module("RobertaLMHead", dense=linear(width, width), layer_norm=layer_norm(width),
                  decoder=linear(width, vocabulary))
    return Module("RobertaForMaskedLM", roberta=bert_body("Roberta", width, layers, vocabulary, 514, 1, 1, "1e-05"),
                  lm_head=head)


def distilbert(width, layers, vocabulary=30522):
    projections = {name: linear(width, width) for name in ("q_lin", "k_lin", "v_lin", "out_lin")}
    block = Module(
        "TransformerBlock",
        attention=Module("DistilBertSdpaAttention", dropout=dropout(0.1), **projections),
        sa_layer_norm=layer_norm(width, "1e-12"),
        ffn=Module("FFN", dropout=dropout(0.1), lin1=linear(width, 4 * width), lin2=linear(4 * width, width),
                   activation="GELUActivation()"),
        output_layer_norm=layer_norm(width, "1e-12"))
    embeddings = Module("Embeddings", word_embeddings=embedding(vocabulary, width, 0),
                        position_embeddings=embedding(512, width), LayerNorm=layer_norm(width, "1e-12"),
                        dropout=dropout(0.1))
    body = Module("DistilBertModel", embeddings=embeddings,
                  transformer=Module("Transformer", layer=Repeated(*[block] * layers)))
    return Module("DistilBertForMaskedLM", activation="GELUActivation()", distilbert=body,
                  vocab_transform=linear(width, width), vocab_layer_norm=layer_norm(width, "1e-12"),
                  vocab_projector=linear(width, vocabulary), mlm_loss_fct="CrossEntropyLoss()")


def t5_attention(width, inner, heads, biased):
    projections = {name: linear(width, inner, False) for name in ("q", "k", "v")}
    bias = {"relative_attention_bias": embedding(32, heads)} if biased else {}
    return Module("T5Attention", **projections, o=linear(inner, width, False), **bias)


def t5_block(width, inner, heads, hidden, decoder, first):
    def part(class_name, **modules):
        return Module(class_name, **modules, layer_norm="T5LayerNorm()", dropout=dropout(0.1))

    parts = [part("T5LayerSelfAttention", SelfAttention=t5_attention(width, inner, heads, first))]
    if decoder:
        parts.append(part("T5LayerCrossAttention", EncDecAttention=t5_attention(width, inner, heads, False)))
    dense = Module("T5DenseActDense", wi=linear(width, hidden, False), wo=linear(hidden, width, False),
                   dropout=dropout(0.1), act="ReLU()")
    parts.append(part("T5LayerFF", DenseReluDense=dense))
    return Module("T5Block", layer=Repeated(*parts))


def t5(width, layers, heads, hidden, inner, vocabulary=32128):
    def stack(decoder):
        blocks = [t5_block(width, inner, heads, hidden, decoder, layer == 0) for layer in range(layers)]
        return Module("T5Stack", embed_tokens=embedding(vocabulary, width), block=Repeated(*blocks),
                      final_layer_norm="T5LayerNorm()", dropout=dropout(0.1))

    return Module("T5ForConditionalGeneration", shared=embedding(vocabulary, width), encoder=stack(False),
                  decoder=stack(True), lm_head=linear(width, vocabulary, False))


def xlnet(width, layers, hidden, vocabulary=32000):
    layer = Module(
        "XLNetLayer",
        rel_attn=Module("XLNetRelativeAttention", layer_norm=layer_norm(width, "1e-12"), dropout=dropout(0.1)),
        ff=Module("XLNetFeedForward", layer_norm=layer_norm(width, "1e-12"), layer_1=linear(width, hidden),
                  layer_2=linear(hidden, width), dropout=dropout(0.1), activation_function="GELUActivation()"),
        dropout=dropout(0.1))
    body = Module("XLNetModel", word_embedding=embedding(vocabulary, width), layer=Repeated(*[layer] * layers),
                  dropout=dropout(0.1))
    return Module("XLNetLMHeadModel", transformer=body, lm_loss=linear(width, vocabulary))


def vit(width, layers, classes=1000, patch=16):
    projections = {name: linear(width, width) for name in ("query", "key", "value")}
    layer = Module(
        "ViTLayer",
        attention=Module("ViTAttention", attention=Module("ViTSelfAttention", **projections),
                         output=Module("ViTSelfOutput", dense=linear(width, width), dropout=dropout(0.0))),
        intermediate=Module("ViTIntermediate", dense=linear(width, 4 * width), intermediate_act_fn="GELUActivation()"),
        output=Module("ViTOutput", dense=linear(4 * width, width), dropout=dropout(0.0)),
        layernorm_before=layer_norm(width, "1e-12"), layernorm_after=layer_norm(width, "1e-12"))
    sides = f"kernel_size=({patch}, {patch}), stride=({patch}, {patch})"
    embeddings = Module("ViTEmbeddings",
                        patch_embeddings=Module("ViTPatchEmbeddings", projection=f"Conv2d(3, {width}, {sides})"),
                        dropout=dropout(0.0))
    body = Module("ViTModel", embeddings=embeddings, encoder=Module("ViTEncoder", layer=Repeated(*[layer] * layers)),
                  layernorm=layer_norm(width, "1e-12"))
    return Module("ViTForImageClassification", vit=body, classifier=linear(width, classes))


def rms_norm(prefix, width, eps):
    return f"{prefix}RMSNorm(({width},), eps={eps})"


def llama(prefix, width, layers, hidden, vocabulary, queries, keys, eps, padding=None, head_norm=None):
    norms = {} if head_norm is None else {name: rms_norm(prefix, head_norm, eps) for name in ("q_norm", "k_norm")}
    attention = Module(prefix + "Attention", q_proj=linear(width, queries, False), k_proj=linear(width, keys, False),
                       v_proj=linear(width, keys, False), o_proj=linear(queries, width, False), **norms)
    mlp = Module(prefix + "MLP", gate_proj=linear(width, hidden, False), up_proj=linear(width, hidden, False),
                 down_proj=linear(hidden, width, False), act_fn="SiLU()")
    layer = Module(prefix + "DecoderLayer", self_attn=attention, mlp=mlp,
                   input_layernorm=rms_norm(prefix, width, eps),
                   post_attention_layernorm=rms_norm(prefix, width, eps))
    body = Module(prefix + "Model", embed_tokens=embedding(vocabulary, width, padding),
                  layers=Repeated(*[layer] * layers), norm=rms_norm(prefix, width, eps),
                  rotary_emb=prefix + "RotaryEmbedding()")
    return Module(prefix + "ForCausalLM", model=body, lm_head=linear(width, vocabulary, False))


def gpt_neox(width, layers, vocabulary):
    layer = Module(
        "GPTNeoXLayer",
        input_layernorm=layer_norm(width), post_attention_layernorm=layer_norm(width),
        post_attention_dropout=dropout(0.0), post_mlp_dropout=dropout(0.0),
        attention=Module("GPTNeoXAttention", query_key_value=linear(width, 3 * width), dense=linear(width, width)),
        mlp=Module("GPTNeoXMLP", dense_h_to_4h=linear(width, 4 * width), dense_4h_to_h=linear(4 * width, width),
                   act="GELUActivation()"))
    body = Module("GPTNeoXModel", embed_in=embedding(vocabulary, width), emb_dropout=dropout(0.0),
                  layers=Repeated(*[layer] * layers), final_layer_norm=layer_norm(width),
                  rotary_emb="GPTNeoXRotaryEmbedding()")
    return Module("GPTNeoXForCausalLM", gpt_neox=body, embed_out=linear(width, vocabulary, False))


# Sizes: each model's config.json on the HuggingFace hub.
MODELS = {
    "bert-base-uncased": lambda: bert(768, 12, 30522),
    "roberta-base": lambda: roberta(768, 12),
    "distilbert-base-uncased": lambda: distilbert(768, 6),
    "gpt2": lambda: gpt2(768, 12),
    "gpt2-large": lambda: gpt2(1280, 36),
    "distilbert/distilgpt2": lambda: gpt2(768, 6),
    "EleutherAI/gpt-neo-125M": lambda: gpt_neo(768, 12),
    "EleutherAI/pythia-160m": lambda: gpt_neox(768, 12, 50304),
    "facebook/opt-125m": lambda: opt(768, 12),
    "xlnet-base-cased": lambda: xlnet(768, 12, 3072),
    "google/vit-base-patch16-224": lambda: vit(768, 12),
    "T5-small": lambda: t5(512, 6, 8, 2048, 512),
    "t5-base": lambda: t5(768, 12, 12, 3072, 768),
    "meta-llama/Llama-3.2-1B": lambda: llama("Llama", 2048, 16, 8192, 128256, 2048, 512, "1e-05"),
    "Qwen/Qwen3-0.6B": lambda: llama("Qwen3", 1024, 28, 3072, 151936, 2048, 1024, "1e-06", head_norm=128),
    "mistralai/Mistral-7B-v0.1": lambda: llama("Mistral", 4096, 32, 14336, 32000, 4096, 1024, "1e-05"),
}


def text_of(name):
    return "\n".join(MODELS[name]().lines()) + "\n"


def differing_files(write):
    """Names of the files that are not what this script prints; brings them up to date if asked."""
    differing = []
    for name in MODELS:
        path = TREES / (name.replace("/", "_") + ".txt")
        expected = text_of(name).encode("utf-8")
        if path.exists() and path.read_bytes() == expected:
            continue
        differing.append(path.name)
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(expected)
    return differing


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", nargs="?", choices=sorted(MODELS), help="print this model's tree")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file differs")
    options = parser.parse_args(arguments)
    if options.model is not None:
        sys.stdout.write(text_of(options.model))
        return 0
    differing = differing_files(write=not options.check)
    for name in differing:
        print(f"models/trees/{name} " + ("differs" if options.check else "written"))
    if not differing:
        print(f"models/trees: all {len(MODELS)} files are up to date")
    return 1 if options.check and differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
