"""The PyTorch modules whose parameter names, shapes and numbers pudica-nn follows."""
import torch
import torch.nn as nn


def join(tokens, positions, embed):
    """tokens [batch, n, w], positions [n, w] -> [batch, n, d]"""
    positions = positions.expand(tokens.size(0), -1, -1)
    return torch.cat([tokens, positions], -1) if embed == "concat" else tokens + positions


class Encoder(nn.Module):
    def __init__(self, n, d, layers, heads, ff, embed):
        super().__init__()
        self.embed = embed
        width = d // 2 if embed == "concat" else d
        self.tok, self.pos = nn.Embedding(2, width), nn.Embedding(n, width)
        layer = nn.TransformerEncoderLayer(d, heads, ff, 0.0, "relu", batch_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(d, 1)

    def forward(self, x):
        """x [batch, n] of 0 and 1 -> [batch, 1]"""
        return self.head(self.enc(join(self.tok(x), self.pos.weight, self.embed))[:, -1])


class EncoderDecoder(nn.Module):
    START = 2

    def __init__(self, n, d, layers, heads, ff, embed):
        super().__init__()
        self.embed = embed
        width = d // 2 if embed == "concat" else d
        self.tok, self.pos = nn.Embedding(2, width), nn.Embedding(n, width)
        self.dec_tok, self.dec_pos = nn.Embedding(3, width), nn.Embedding(n, width)
        self.transformer = nn.Transformer(d, heads, layers, layers, ff, 0.0, "relu", batch_first=True)
        self.head = nn.Linear(d, 1)

    def step(self, x, tokens):
        """x [batch, n], decoder tokens [batch, l] -> [batch, l]"""
        source = join(self.tok(x), self.pos.weight, self.embed)
        target = join(self.dec_tok(tokens), self.dec_pos.weight[: tokens.size(1)], self.embed)
        mask = torch.full((tokens.size(1), tokens.size(1)), float("-inf"), dtype=source.dtype).triu(1)
        return self.head(self.transformer(source, target, tgt_mask=mask)).squeeze(-1)

    def forward(self, x):
        """Teacher-forced: output i sees the parities of the prefixes before i. x [batch, n] -> [batch, n]"""
        parities = x.cumsum(1) % 2
        start = torch.full_like(x[:, :1], self.START)
        return self.step(x, torch.cat([start, parities[:, :-1]], 1))

    def decode(self, x):
        """Output i sees the network's own outputs before i, cut at 1/2. Everything is computed anew for each token."""
        tokens, outputs = torch.full_like(x[:, :1], self.START), []
        for _ in range(x.size(1)):
            outputs.append(self.step(x, tokens)[:, -1])
            tokens = torch.cat([tokens, (outputs[-1] > 0.5).long()[:, None]], 1)
        return torch.stack(outputs, 1)
