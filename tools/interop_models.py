"""interop_models.py [CASES] - models quantized by lowbit, loaded by transformers.

transformers saves small models with random weights, lowbit quantizes them to
directories, and transformers loads these. Compared with transformers' own
quantization, the same layers are packed and the logits have the same bits. The
same holds for the models in CASES, which other programs have quantized.
"""
import itertools
import json
import logging
import os
import pathlib
import shutil
import sys
import tempfile

os.environ["TORCHDYNAMO_DISABLE"] = "1"  # BitNet's would be compiled first

import bitsandbytes.functional
import bitsandbytes.nn.modules
import numpy as np
import safetensors.torch
import torch
import transformers as hf
from transformers.integrations import bitnet

from interop_common import check, done, lowbit

hf.logging.set_verbosity_error()
hf.utils.logging.disable_progress_bar()
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # of its casts
# On CPUs with AVX512-BF16, bitsandbytes repacks weights on first use, which fails
# for rows that are not a multiple of a block.
bitsandbytes.nn.modules.has_avx512bf16 = lambda: False

BITNET = ["--type", "ternary", "--layout", "bitnet", "--threshold", "absmean"]
KINDS = {
    "nf4": ["--type", "nf4", "--layout", "bnb"],
    "nf4_double": ["--type", "nf4", "--layout", "bnb", "--double-quant"],
    "int8": ["--type", "int8", "--layout", "bnb"],
    "bitnet_bitlinear": [*BITNET, "--linear-class", "bitlinear"],
    "bitnet_autobitlinear": [*BITNET, "--linear-class", "autobitlinear"],
}
PACKED = ("Linear4bit", "Linear8bitLt", "BitLinear", "AutoBitLinear")
MARK = {"nf4": ".weight.absmax", "nf4_double": ".weight.absmax", "int8": ".SCB",
        "bitnet_bitlinear": ".weight_scale",
        "bitnet_autobitlinear": ".weight_scale"}


# ---- models -----------------------------------------------------------------

LAYERS = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2,
              num_attention_heads=4, num_key_value_heads=2, vocab_size=96,
              max_position_embeddings=64, bos_token_id=1, eos_token_id=2,
              pad_token_id=0)
BERT = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=1,
            num_attention_heads=4, vocab_size=96, max_position_embeddings=64)
PAIR = dict(d_model=64, encoder_layers=1, decoder_layers=1, vocab_size=96,
            encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=128, decoder_ffn_dim=128, bos_token_id=1,
            eos_token_id=2, pad_token_id=0, decoder_start_token_id=1)

# name: class, config, and how many layers are packed
MODELS = {
    "llama": ("LlamaForCausalLM", "LlamaConfig",
              dict(LAYERS, tie_word_embeddings=False), 14),
    "llama, tied": ("LlamaForCausalLM", "LlamaConfig",
                    dict(LAYERS, tie_word_embeddings=True), 14),
    "llama, labels": ("LlamaForSequenceClassification", "LlamaConfig",
                      dict(LAYERS, num_labels=32), 14),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig",
                dict(LAYERS, num_local_experts=4), 8),
    "gpt-oss": ("GptOssForCausalLM", "GptOssConfig",
                dict(LAYERS, num_local_experts=4, head_dim=16), 8),
    "gemma": ("Gemma3ForCausalLM", "Gemma3TextConfig",
              dict(LAYERS, head_dim=16), 14),
    "phi": ("Phi3ForCausalLM", "Phi3Config", LAYERS, 8),
    "neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig",
             dict(BERT, bos_token_id=1, eos_token_id=2), 4),
    "opt": ("OPTForCausalLM", "OPTConfig",
            dict(hidden_size=64, ffn_dim=128, num_hidden_layers=1,
                 num_attention_heads=4, vocab_size=96, word_embed_proj_dim=32,
                 max_position_embeddings=64), 8),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config",
             dict(n_embd=64, n_layer=1, n_head=4, vocab_size=96, n_positions=64,
                  bos_token_id=1, eos_token_id=2), 0),
    "falcon": ("FalconForCausalLM", "FalconConfig",
               dict(hidden_size=64, num_hidden_layers=1, num_attention_heads=4,
                    vocab_size=96, bos_token_id=1, eos_token_id=2), 0),
    "albert": ("AlbertForMaskedLM", "AlbertConfig",
               dict(BERT, embedding_size=32), 7),
    "bert": ("BertForMaskedLM", "BertConfig", BERT, 7),
    "t5": ("T5ForConditionalGeneration", "T5Config",
           dict(d_model=64, d_kv=16, d_ff=128, num_layers=1, num_heads=4,
                vocab_size=96), 14),
    "bart": ("BartForConditionalGeneration", "BartConfig", PAIR, 16),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig", PAIR, 16),
}


def save(name, path, dtype=torch.bfloat16, **how):
    cls, config, options, _ = MODELS[name]
    torch.manual_seed(11)
    model = getattr(hf, cls)(getattr(hf, config)(**options))
    model.to(dtype).save_pretrained(path, **how)


def logits(model):
    ids = torch.arange(16)[None]
    words = {"input_ids": ids}
    if model.config.is_encoder_decoder:
        words["decoder_input_ids"] = ids
    if model.config.model_type == "whisper":
        g = torch.Generator().manual_seed(1)
        del words["input_ids"]
        words["input_features"] = torch.randn(1, 80, 3000, generator=g).to(
            model.dtype)
    with torch.no_grad():
        return model(**words).logits.float()


def quantize(src, out, *options):
    shutil.rmtree(out, ignore_errors=True)
    lowbit("quantize", src, "-o", out, *options)


def load(cls, path, what, **how):
    model, info = cls.from_pretrained(path, output_loading_info=True, **how)
    check(not any(info.values()), f"{what}: {info}")
    n = sum(type(m).__name__ in PACKED for m in model.modules())
    return logits(model.eval()), n


def class_of(path):
    with open(path / "config.json", encoding="utf-8") as f:
        return getattr(hf, json.load(f)["architectures"][0])


def tensors_of(path):
    out = {}
    for file in path.glob("*.safetensors"):
        out |= safetensors.torch.load_file(file)
    return out


# ---- transformers' own quantization -----------------------------------------

def their_config(path, kind):
    """The BitsAndBytesConfig that corresponds to a directory's config.json."""
    with open(path / "config.json", encoding="utf-8") as f:
        said = json.load(f).get("quantization_config")
    if said is None:
        return None
    four = kind != "int8"
    return hf.BitsAndBytesConfig(
        load_in_4bit=four, load_in_8bit=not four, bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=kind == "nf4_double",
        bnb_4bit_compute_dtype=said["bnb_4bit_compute_dtype"],
        llm_int8_skip_modules=said["llm_int8_skip_modules"])


def check_logits(ours, theirs, what, exact=True):
    check(bool(ours.isfinite().all()), f"{what}: not finite")
    far = float((ours - theirs).abs().max() / theirs.abs().max())
    check(torch.equal(ours, theirs) or (not exact and far < 1e-3),
          f"{what}: logits are off by {far:g} of the largest")


def check_bitnet(d, out, kind, what):
    """Codes are packed as by transformers, and decode to the same values."""
    wide = d / "wide.safetensors"
    lowbit("dequantize", out, "-o", wide)
    packed, values = tensors_of(out), safetensors.torch.load_file(wide)
    for name in [k for k in packed if k.endswith(".weight_scale")]:
        at = name.removesuffix("_scale")
        scale, w = packed[name], values[at]
        codes = bitnet.unpack_weights(packed[at], dtype=torch.float32)
        inverse = kind == "bitnet_bitlinear"
        w_there = codes / scale if inverse else codes * scale
        check(torch.equal(w_there.to(w.dtype), w), f"{what}: {at}")
        check(torch.equal(bitnet.pack_weights(codes), packed[at]),
              f"{what}: the codes of {at}")


def check_model(d, src, kind, what, packed, *options):
    out, report = d / "out", d / "report.json"
    quantize(src, out, *KINDS[kind], "--report", report, *options)
    cls = class_of(src)
    ours, n = load(cls, out, what)
    there = sum(k.endswith(MARK[kind]) for k in tensors_of(out))
    check(n == there == packed, f"{what}: {n} of {there} packed, not {packed}")
    if kind.startswith("bitnet"):
        check(bool(ours.isfinite().all()), f"{what}: not finite")
        check_bitnet(d, out, kind, what)
        return
    config = their_config(out, kind)
    theirs, n = load(cls, src, what, quantization_config=config)
    check(n == packed, f"{what}: transformers packs {n}, not {packed}")
    check_logits(ours, theirs, what, kind != "nf4_double")


def test_made(d):
    for i, name in enumerate(MODELS):
        src = d / f"model{i}"
        save(name, src)
        for kind in KINDS:
            check_model(d, src, kind, f"{name}, {kind}", MODELS[name][3])
        done(name)


def test_variants(d):
    """Other dtypes, several files, and layers that are excluded."""
    for dtype, kind in itertools.product((torch.float32, torch.float16),
                                         ("nf4", "int8")):
        src = d / f"{dtype}"
        save("llama, tied", src, dtype)
        check_model(d, src, kind, f"{dtype}, {kind}", 14)
    save("llama", d / "shards", max_shard_size="100KB")
    check((d / "shards/model.safetensors.index.json").exists(), "no shards")
    for kind in KINDS:
        check_model(d, d / "shards", kind, f"shards, {kind}", 14)
    for name, kind in itertools.product(("llama", "llama, tied", "neox"), KINDS):
        src = d / f"exclude {name}"
        save(name, src)
        layer = "q_proj" if "llama" in name else "dense_h_to_4h"
        stay = 2 if "llama" in name else 1
        check_model(d, src, kind, f"{name}, less, {kind}",
                    MODELS[name][3] - stay, "--exclude", layer)


def weights_of(model):
    """Weights as the model uses them, packed ones decoded by their library."""
    out = {}
    for name, m in model.named_modules():
        kind = type(m).__name__
        if kind == "Linear4bit":
            w = bitsandbytes.functional.dequantize_4bit(
                m.weight.data, m.weight.quant_state)
        elif kind == "Linear8bitLt":
            w = (m.weight.CB.float() * m.weight.SCB[:, None]) * (1 / 127)
        elif kind in ("BitLinear", "AutoBitLinear"):
            codes = m.weight
            if codes.dtype == torch.uint8:
                codes = bitnet.unpack_weights(codes, dtype=torch.float32)
            w = (codes.float() * m.weight_scale.float()).to(
                m.weight_scale.dtype)
        else:
            continue
        out[f"{name}.weight"] = w.detach()
    return out


def check_default(d, src, kind):
    """Without --layout: it loads, and each packed weight equals lowbit's."""
    out, wide = d / "default", d / "wide.safetensors"
    quantize(src, out, "--type", kind)
    model, info = class_of(src).from_pretrained(out, output_loading_info=True)
    check(not any(info.values()), f"default {kind}: {info}")
    lowbit("dequantize", out, "-o", wide)
    ours, theirs = safetensors.torch.load_file(wide), weights_of(model)
    check(len(theirs) == 14, f"default {kind}: {len(theirs)} packed")
    for name, w in theirs.items():
        check(torch.equal(ours[name], w), f"default {kind}: {name} differs")
    check(bool(logits(model.eval()).isfinite().all()), f"default {kind}")


def check_refused(src, out, *options):
    """Layout native: an error, not random weights."""
    quantize(src, out, *options)
    with open(out / "config.json", encoding="utf-8") as f:
        said = json.load(f)["quantization_config"]
    check("quant_method" not in said and "lowbit" in said, f"{options}: {said}")
    try:
        class_of(src).from_pretrained(out)
    except ValueError as e:
        check("quant_method" in str(e), f"{options}: {e}")
    else:
        check(False, f"{options}: loaded by transformers")


def test_default(d):
    src = d / "default model"
    save("llama", src)
    for kind in ("nf4", "int8", "ternary"):
        check_default(d, src, kind)
    for options in (["--type", "nf4", "--layout", "native"],
                    ["--type", "int8", "--block-size", "32"],
                    ["--type", "nf4", "--override", "down=int8"],
                    ["--type", "q8_0"], ["--type", "binary"],
                    ["--target-bpw", "8"]):
        check_refused(src, d / "native", *options)
    lowbit("convert", d / "default", "-o", d / "again")
    load(class_of(src), d / "again", "converted")
    check((d / "again/config.json").read_bytes() ==
          (d / "default/config.json").read_bytes(), "another configuration")


def test_reasons(d):
    """Float weights are listed in config.json."""
    save("mixtral", d / "mixtral")
    quantize(d / "mixtral", d / "out", *KINDS["nf4"], "--report",
             d / "report.json")
    text = (d / "report.json").read_text()
    for why in ("transformers merges experts when loading", "output head", "router"):
        check(why in text, f"the report does not say {why}")


# ---- models of other programs -----------------------------------------------

def test_cases(d, cases):
    base = cases / "base"
    cls = class_of(base)
    for kind, options in KINDS.items():
        if not (cases / kind).is_dir():
            continue
        quantize(base, d / "out", *options)
        ours, n = load(cls, d / "out", f"our {kind}")
        theirs, m = load(cls, cases / kind, f"their {kind}")
        check(n == m and n > 0, f"{kind}: {n} packed here, {m} there")
        check_logits(ours, theirs, f"{kind} of {base}", kind != "nf4_double")
        noted = cases / f"logits_{kind}.npy"
        if noted.exists():
            check(np.load(noted).size == theirs.numel(), f"{noted}: a shape")


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for test in (test_default, test_made, test_variants, test_reasons):
        test(folder)
        done(test.__name__[5:])
    if len(sys.argv) > 1 and pathlib.Path(sys.argv[1]).is_dir():
        test_cases(folder, pathlib.Path(sys.argv[1]))
        done("models of others")
    else:
        print("interop: no models of others")
