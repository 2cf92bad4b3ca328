"""Where noise enters RoBERTa decides how sensitive it is: the same trained network, noise of variance 15 on one embedding at a time, added after
the embeddings' LayerNorm (as in these results), before it, or after it and normalised again.

    pudica run vasudeva/mrpc --scale gpu model.kind=roberta model.attention=softmax seed=0 train.epochs=6 measure.every=6 measure.inputs=60 --data DATA --out roberta
    python3 place_of_noise.py roberta DATA [PAIRS]      # needs torch, transformers, tokenizers, safetensors
"""
import json
import pathlib
import random
import sys

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.nn.functional import layer_norm
from transformers import RobertaConfig, RobertaForSequenceClassification

DRAWS, VARIANCE, WIDTH, LONGEST = 3, 15.0, 256, 128
runs, data = pathlib.Path(sys.argv[1]) / "runs", pathlib.Path(sys.argv[2])
pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 200

settings = RobertaConfig(
    vocab_size=50265, hidden_size=WIDTH, num_hidden_layers=4, num_attention_heads=8, intermediate_size=4 * WIDTH,
    max_position_embeddings=LONGEST + 2, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5, num_labels=2,
)
network = RobertaForSequenceClassification(settings).eval()
network.load_state_dict(load_file(next(runs.glob("*/weights.safetensors"))))
embeddings = network.roberta.embeddings

merges = (data / "bpe/vocab.bpe").read_text(encoding="utf8").split("\n")[1:]
vocabulary = json.loads((data / "bpe/roberta_vocab.json").read_text(encoding="utf8"))
tokens = Tokenizer(models.BPE(vocabulary, [tuple(line.split()) for line in merges if line]))
tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)


def texts():
    """Training pairs in an order of their own: tokens, label."""
    lines = (data / "mrpc/msr_paraphrase_train.txt").read_text(encoding="utf-8-sig").split("\n")[1:]
    rows = [line.rstrip("\r").split("\t") for line in lines if line]
    random.Random(0).shuffle(rows)
    for label, _, _, a, b in rows:
        ids = [0, *tokens.encode(a).ids, 2, 2, *tokens.encode(b).ids, 2]
        if len(ids) <= LONGEST:
            yield ids, int(label)


def normalised(x):
    return layer_norm(x, (WIDTH,))


def answers(x):
    """The classes of sequences of embeddings [batch, length, width]."""
    return network.classifier(network.roberta.encoder(x).last_hidden_state).argmax(-1)


def summed(ids):
    """Words and positions, before the embeddings' LayerNorm: [1, length, width]"""
    words = torch.tensor([ids])
    places = torch.arange(2, 2 + len(ids))
    return embeddings.word_embeddings(words) + embeddings.position_embeddings(places) + embeddings.token_type_embeddings(torch.zeros_like(words))


# What noise is added to, and what is done afterwards, of the sums above.
PLACES = {
    "after LayerNorm": (embeddings.LayerNorm, lambda x: x),
    "before LayerNorm": (lambda x: x, embeddings.LayerNorm),
    "after it, then normalised again": (embeddings.LayerNorm, normalised),
}

torch.manual_seed(0)
changed, right, touched, used = {name: 0.0 for name in PLACES}, 0, 0, 0
with torch.no_grad():
    for ids, label in texts():
        if used == pairs:
            break
        used, touched, sums = used + 1, touched + len(ids), summed(ids)
        right += int(answers(embeddings.LayerNorm(sums)).item() == label)
        for name, (before, after) in PLACES.items():
            x, each = before(sums), torch.arange(len(ids))
            plain = answers(after(x))
            for _ in range(DRAWS):
                noisy = x.repeat(len(ids), 1, 1)
                noisy[each, each] += VARIANCE**0.5 * torch.randn(len(ids), WIDTH)
                changed[name] += (answers(after(noisy)) != plain).float().sum().item() / DRAWS
print(f"{used} training pairs, accuracy {right / used:.3f}")
for name, count in changed.items():
    print(f"{name}: sensitivity {count / touched:.4f}")
