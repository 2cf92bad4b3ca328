"""The PyTorch modules whose parameter names, shapes and numbers pudica-nn follows."""
import torch
import torch.nn as nn
import torch.nn.functional as F


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


def sinusoids(n, width):
    positions, columns = torch.arange(n).double()[:, None], torch.arange(width)
    angles = positions / 10000 ** ((columns // 2 * 2).double() / width)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


class Mlp(nn.Module):
    def __init__(self, n, d, layers, activation):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d if k else n, d) for k in range(layers))
        self.head = nn.Linear(d, 1)
        self.activation = getattr(F, activation)

    def forward(self, x):
        x = (2 * x - 1).to(self.head.weight.dtype)
        for layer in self.layers:
            x = self.activation(layer(x))
        return self.head(x)


class Recurrent(nn.Module):
    def __init__(self, n, cell, d, layers, read):
        super().__init__()
        self.tok = nn.Embedding(2, d)
        self.cell, self.read = cell, read
        setattr(self, cell, {"lstm": nn.LSTM, "gru": nn.GRU}[cell](d, d, layers, batch_first=True))
        self.head = nn.Linear(d, 1)

    def forward(self, x):
        states, _ = getattr(self, self.cell)(self.tok(x))
        return self.head(states[:, -1] if self.read == "last" else states.mean(1))


class Recurrence(nn.Module):
    def __init__(self, d, signed):
        super().__init__()
        self.gate, self.input, self.output = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.signed = signed

    def forward(self, x):
        a, b = torch.sigmoid(self.gate(x)), self.input(x)
        a = 2 * a - 1 if self.signed else a
        h, states = torch.zeros_like(b[:, 0]), []
        for t in range(x.size(1)):
            h = a[:, t] * h + b[:, t]
            states.append(h)
        return self.output(torch.stack(states, 1))


class RotaryAttention(nn.MultiheadAttention):
    """Self-attention with its parameters' names; in each head, values k and k + w/2 are turned by position / 10000^(2k/w)."""

    def forward(self, x, mask=None):
        batch, n, d = x.shape
        width = d // self.num_heads
        q, k, v = F.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        q, k, v = (t.view(batch, n, self.num_heads, width).transpose(1, 2) for t in (q, k, v))
        angles = torch.arange(n).double()[:, None] / 10000 ** (torch.arange(width // 2).double() * 2 / width)
        turn = torch.polar(torch.ones_like(angles), angles)

        def turned(t):
            points = torch.complex(*t.double().chunk(2, -1)) * turn
            return torch.cat([points.real, points.imag], -1).to(t.dtype)

        mixed = F.scaled_dot_product_attention(turned(q), turned(k), v, attn_mask=mask)
        return self.out_proj(mixed.transpose(1, 2).reshape(batch, n, d))


class Layer(nn.Module):
    """nn.TransformerEncoderLayer's blocks around another mixer, or with another norm than LayerNorm."""

    def __init__(self, d, ff, norm, activation, mixer):
        super().__init__()
        name, module = mixer
        self.mixer = name
        setattr(self, name, module)
        self.linear1, self.linear2 = nn.Linear(d, ff), nn.Linear(ff, d)
        make = {"post": nn.LayerNorm, "pre": nn.LayerNorm, "rms": lambda d: nn.RMSNorm(d, eps=1e-5)}.get(norm)
        if make:
            self.norm1, self.norm2 = make(d), make(d)
        self.place, self.activation = norm, getattr(F, activation)

    def mix(self, x, mask):
        mixer = getattr(self, self.mixer)
        if isinstance(mixer, RotaryAttention):
            return mixer(x, mask)
        if isinstance(mixer, nn.MultiheadAttention):
            return mixer(x, x, x, attn_mask=mask, need_weights=False)[0]
        return mixer(x)

    def forward(self, x, mask=None):
        feed = lambda x: self.linear2(self.activation(self.linear1(x)))
        if self.place == "none":
            x = x + self.mix(x, mask)
            return x + feed(x)
        if self.place == "post":
            x = self.norm1(x + self.mix(x, mask))
            return self.norm2(x + feed(x))
        x = x + self.mix(self.norm1(x), mask)
        return x + feed(self.norm2(x))


class Stack(nn.Module):
    def __init__(self, layers, norm):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        if norm is not None:
            self.norm = norm

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x) if mask is None else layer(x, mask)
        return self.norm(x) if hasattr(self, "norm") else x


class StateSpace(nn.Module):
    def __init__(self, n, d, layers, ff, norm, activation, read, signed):
        super().__init__()
        self.tok = nn.Embedding(2, d)
        last = nn.LayerNorm(d) if norm == "pre" else None
        made = [Layer(d, ff, norm, activation, ("recurrence", Recurrence(d, signed))) for _ in range(layers)]
        self.ssm = Stack(made, last)
        self.head = nn.Linear(d, 1)
        self.read = read

    def forward(self, x):
        x = self.ssm(self.tok(x))
        return self.head(x[:, -1] if self.read == "last" else x.mean(1))


class Transformer(nn.Module):
    def __init__(self, n, d, layers, heads, ff, embed, norm, position, positions, attention, read, activation):
        super().__init__()
        joined = position in ("learned", "sinusoidal")
        width = d // 2 if joined and embed == "concat" else d
        self.tok = nn.Embedding(2, width)
        if position == "learned":
            self.pos = nn.Embedding(positions, width)
        if norm in ("post", "pre") and position != "rotary":
            layer = nn.TransformerEncoderLayer(d, heads, ff, 0.0, activation, batch_first=True, norm_first=norm == "pre")
            last = nn.LayerNorm(d) if norm == "pre" else None
            self.enc = nn.TransformerEncoder(layer, layers, norm=last, enable_nested_tensor=False)
        else:
            kind = RotaryAttention if position == "rotary" else nn.MultiheadAttention
            attend = lambda: ("self_attn", kind(d, heads, batch_first=True))
            last = {"rms": lambda: nn.RMSNorm(d, eps=1e-5), "pre": lambda: nn.LayerNorm(d)}.get(norm, lambda: None)()
            self.enc = Stack([Layer(d, ff, norm, activation, attend()) for _ in range(layers)], last)
        self.head = nn.Linear(d, 1)
        self.position, self.embed, self.width, self.read, self.causal = position, embed, width, read, attention == "causal"

    def forward(self, x, offset=0):
        n, tokens = x.size(1), self.tok(x)
        if self.position in ("learned", "sinusoidal"):
            vectors = (
                self.pos.weight[offset : offset + n]
                if self.position == "learned"
                else sinusoids(offset + n, self.width)[offset:].to(tokens.dtype)
            ).expand(x.size(0), -1, -1)
            tokens = torch.cat([tokens, vectors], -1) if self.embed == "concat" else tokens + vectors
        mask = torch.full((n, n), float("-inf"), dtype=tokens.dtype).triu(1) if self.causal else None
        x = self.enc(tokens, mask)
        return self.head(x[:, -1] if self.read == "last" else x.mean(1))
