"""Write the golden files of the networks and tokenisers on texts.

    python3 -m venv venv && venv/bin/pip install torch==2.11.0 transformers==5.22.2 safetensors
    venv/bin/python tests/golden/text.py [folder with roberta_vocab.json, encoder.json and vocab.bpe]

text-*.safetensors, one for each network at a tiny size: weight.* (f32; far from the defaults, so that no bias is zero and no
LayerNorm trivial), ids and lengths of a padded batch, labels, noise and where it is put, and, computed in f64 with those weights:
scores and grad.* of the mean cross-entropy, and touched, the scores with the noise on one embedding of each sequence. losses are
the first five of torch.optim.AdamW in f32 from the same weights on that batch.

tokens-text.json (only with the folder): what the Python tokenisers make of tricky texts.
"""
import json
import pathlib
import sys

import torch
import torch.nn as nn
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2ForSequenceClassification, RobertaConfig, RobertaForSequenceClassification

HERE = pathlib.Path(__file__).parent
ADAMW = dict(lr=1e-2, weight_decay=1e-2)
VOCABULARY, LENGTH, CLASSES, PADDING = 23, 12, 3, 1
LENGTHS = [12, 5, 1, 9, 5, 8]


def relu_attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **_):
    """transformers' `eager_attention_forward` with ReLU in place of the softmax."""
    scores = query @ key.transpose(2, 3) * (query.size(-1) ** -0.5 if scaling is None else scaling)
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = nn.functional.dropout(scores.relu(), dropout, module.training)
    return (weights @ value).transpose(1, 2).contiguous(), weights


class Roberta(nn.Module):
    def __init__(self, d, layers, heads, ff, attention="eager"):
        super().__init__()
        if attention == "relu":
            from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
            ALL_ATTENTION_FUNCTIONS.register("relu", relu_attention)
            from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
            ALL_MASK_ATTENTION_FUNCTIONS.register("relu", ALL_MASK_ATTENTION_FUNCTIONS["eager"])
        config = RobertaConfig(
            vocab_size=VOCABULARY, max_position_embeddings=LENGTH + 2, hidden_size=d, num_hidden_layers=layers,
            num_attention_heads=heads, intermediate_size=ff, type_vocab_size=1, layer_norm_eps=1e-5, num_labels=CLASSES,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation=attention)
        self.inner = RobertaForSequenceClassification(config)
        self.norm = self.inner.roberta.embeddings.LayerNorm

    def forward(self, ids, mask):
        return self.inner(input_ids=ids, attention_mask=mask).logits


class Gpt2(nn.Module):
    def __init__(self, d, layers, heads, ff):
        super().__init__()
        config = GPT2Config(
            vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=d, n_layer=layers, n_head=heads, n_inner=ff, num_labels=CLASSES,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, pad_token_id=PADDING, attn_implementation="eager")
        self.inner = GPT2ForSequenceClassification(config)
        # The LayerNorm the measure needs; `drop` is where the sum of the embeddings goes through.
        self.inner.transformer.ln_e = self.norm = nn.LayerNorm(d)
        self.inner.transformer.drop.register_forward_hook(lambda _, inputs, __: self.norm(inputs[0]))

    def forward(self, ids, mask):
        return self.inner(input_ids=ids, attention_mask=mask).logits


class Lstm(nn.Module):
    class Inner(nn.Module):
        def __init__(self, d, layers):
            super().__init__()
            self.embedding, self.norm = nn.Embedding(VOCABULARY, d), nn.LayerNorm(d)
            self.lstm = nn.LSTM(d, d, layers, batch_first=True)
            self.classifier = nn.Linear(d, CLASSES)

    def __init__(self, d, layers):
        super().__init__()
        self.inner = self.Inner(d, layers)
        self.norm = self.inner.norm

    def forward(self, ids, mask):
        x = self.norm(self.inner.embedding(ids))
        packed = nn.utils.rnn.pack_padded_sequence(x, mask.sum(1), batch_first=True, enforce_sorted=False)
        _, (states, _) = self.inner.lstm(packed)
        return self.inner.classifier(states[-1])


CASES = {
    "roberta": (Roberta, dict(d=8, layers=2, heads=2, ff=12)),
    "roberta-relu": (Roberta, dict(d=6, layers=3, heads=3, ff=10, attention="relu")),
    "gpt2": (Gpt2, dict(d=8, layers=2, heads=2, ff=12)),
    "lstm": (Lstm, dict(d=5, layers=3)),
}


def write(name, make, config, seed):
    torch.manual_seed(seed)
    module = make(**config).train()  # training mode; there is no dropout
    with torch.no_grad():
        for parameter in module.inner.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    weights = {key: value.clone() for key, value in module.inner.state_dict().items()}
    file = {f"weight.{key}": value for key, value in weights.items()}

    lengths = torch.tensor(LENGTHS)
    mask = (torch.arange(LENGTH) < lengths[:, None]).long()
    # No token of a sequence is the padding token, by which GPT-2 in transformers finds the last one.
    ids = torch.randint(2, VOCABULARY, mask.shape) * mask + PADDING * (1 - mask)
    labels = torch.randint(0, CLASSES, (len(LENGTHS),))
    positions = torch.tensor([length * 2 // 3 for length in LENGTHS])
    noise = torch.randn(len(LENGTHS), config["d"])
    file |= {"ids": ids.byte(), "lengths": lengths.byte(), "labels": labels.byte(), "positions": positions.byte(), "noise": noise}

    module.double()
    scores = module(ids, mask)
    nn.functional.cross_entropy(scores, labels).backward()
    file |= {"scores": scores.detach().clone()}
    file |= {f"grad.{key}": parameter.grad.clone() for key, parameter in module.inner.named_parameters()}
    # Every network here gets padded batches, so the LayerNorm's output is [batch, length, d].
    def add(_, __, output):
        return output.index_put((torch.arange(len(LENGTHS)), positions), noise.double(), accumulate=True)
    hook = module.norm.register_forward_hook(add)
    with torch.no_grad():
        file["touched"] = module(ids, mask)
    hook.remove()

    trained = make(**config).train()
    trained.inner.load_state_dict(weights)
    optimiser = torch.optim.AdamW(trained.inner.parameters(), **ADAMW)
    losses = []
    for _ in range(5):
        loss = nn.functional.cross_entropy(trained(ids, mask), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    file["losses"] = torch.tensor(losses)
    metadata = {"torch": torch.__version__, "config": json.dumps(config), "adamw": json.dumps(ADAMW)}
    metadata["names"] = json.dumps([[key, list(value.shape)] for key, value in weights.items()])
    save_file({key: value.contiguous() for key, value in file.items()}, HERE / f"text-{name}.safetensors", metadata)
    print(name, "losses", [round(loss, 6) for loss in losses])


TEXTS = [
    "",
    " ",
    "Hello world",
    " Hello  world ",
    "a  b   c    d",
    "tabs\tand\nnew lines\r\n end",
    "He said \"don't\" and they'll've we're I'm you'd it's 'tis",
    "the company 's long-term growth strategy .",
    "1234567890 3.14159 1,000,000 2nd ½ ²",
    "naïve café Zürich Ærøskøbing",
    "cafe\u0301 with a combining accent",
    "Привет, мир! 你好，世界。 こんにちは 안녕하세요",
    "مرحبا بالعالم שלום עולם",
    "emoji 😀👍🏽👨‍👩‍👧‍👦🇩🇪 done",
    "math ∑ᵢ xᵢ² ≤ ∞ → ℝ",
    "non\u00a0breaking\u2003em space\u200bzero width",
    "<s> not the start </s> <pad> <mask> <unk> <|endoftext|>",
    "<mask>s and a <mask> after a space",
    "ALL CAPS and CamelCase and snake_case and kebab-case",
    "!!!??? ... --- ___ ###",
    "\u0000\u0001\u007f control",
    "x" * 300,
    " " * 50 + "end",
    "Supercalifragilisticexpialidocious " * 12,
    "https://example.org/a?b=c&d=%20e#f",
]
LONGEST = 32


def write_tokens(folder):
    """Of each text the tokens alone, of texts i and i + 1 the pair cut to LONGEST."""
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
    from tokenizers.processors import RobertaProcessing
    file = {"texts": TEXTS, "longest": LONGEST}
    for kind, vocabulary, special in [
        ("roberta", "roberta_vocab.json", ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]),
        ("gpt2", "encoder.json", ["<|endoftext|>"]),
    ]:
        # What RobertaTokenizer and GPT2Tokenizer of transformers are made of.
        pieces = json.loads((folder / vocabulary).read_text())
        lines = (folder / "vocab.bpe").read_text().splitlines()[1:]
        tokenizer = Tokenizer(models.BPE(vocab=pieces, merges=[tuple(line.split()) for line in lines if line]))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])
        file[kind] = {"size": len(pieces), "tokens": [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]}
        if kind == "roberta":
            tokenizer.post_processor = RobertaProcessing(("</s>", pieces["</s>"]), ("<s>", pieces["<s>"]), add_prefix_space=False)
            tokenizer.enable_truncation(LONGEST)
            file[kind]["singles"] = [tokenizer.encode(text).ids for text in TEXTS]
            file[kind]["pairs"] = [tokenizer.encode(*pair).ids for pair in zip(TEXTS, TEXTS[1:])]
            check_against_transformers(folder, file[kind])
    (HERE / "tokens-text.json").write_text(json.dumps(file))


def check_against_transformers(folder, expected):
    """RobertaTokenizer of transformers gives the same."""
    from transformers import RobertaTokenizer
    tokenizer = RobertaTokenizer(vocab=str(folder / "roberta_vocab.json"), merges=str(folder / "vocab.bpe"))
    for text, tokens in zip(TEXTS, expected["tokens"]):
        assert tokenizer(text, add_special_tokens=False).input_ids == tokens, text
    for pair, tokens in zip(zip(TEXTS, TEXTS[1:]), expected["pairs"]):
        assert tokenizer(*pair, max_length=LONGEST, truncation="longest_first").input_ids == tokens, pair
    print("transformers' RobertaTokenizer agrees")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        write_tokens(pathlib.Path(sys.argv[1]))
    for seed, (name, (make, config)) in enumerate(CASES.items()):
        write(name, make, config, seed)
