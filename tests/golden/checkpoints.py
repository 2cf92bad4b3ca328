"""Write the golden files of other people's checkpoints: small networks with random weights as PyTorch and `transformers` save them, and what
they answer.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.22.2 numpy safetensors tokenizers
    venv/bin/python tests/golden/checkpoints.py

checkpoints/NAME.EXT are the files of networks, in the formats people have: ZIP and legacy streams, nested state dicts, `module.` prefixes,
half precision, shards. checkpoints/NAME-expected.safetensors has images or ids, labels and, computed in f64: outputs, and grad.* and
input_grad of the mean cross-entropy (input_grad of its sum), with weight.* for tests of the network alone; for one network also trace and top,
the trace and the largest eigenvalue of the Hessian.
"""
import json
import pathlib
import shutil

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import (GPT2Config, GPT2ForSequenceClassification, RobertaConfig, RobertaForSequenceClassification, ViTConfig,
                          ViTForImageClassification)

from foreign import CifarResNet, ResidualVit, TorchVit, TorchvisionResNet

HERE = pathlib.Path(__file__).parent / "checkpoints"


def roughen(module):
    """Weights far from the defaults: no bias is zero, no norm trivial."""
    with torch.no_grad():
        for name, value in module.state_dict().items():
            if name.endswith("running_var"):
                value += torch.rand_like(value)
            elif value.is_floating_point():
                value += 0.1 * torch.randn_like(value)
    return module.eval()


def answers(module, images, labels, gradients=True):
    module = module.double()
    x = images.double().requires_grad_()
    outputs = module(x)
    file = {"images": images, "labels": labels.byte(), "outputs": outputs.detach()}
    if gradients:
        file |= {f"weight.{name}": value.float() for name, value in module.state_dict().items() if value.is_floating_point()}
        F.cross_entropy(outputs, labels).backward()
        # Copied, as `float()` below would make f32 of them.
        file |= {f"grad.{name}": parameter.grad.clone() for name, parameter in module.named_parameters()}
        file["input_grad"] = x.grad * len(labels)
    module.float()
    return file


def curvature(module, images, labels):
    """Trace and largest eigenvalue of the Hessian of the mean cross-entropy, row after row."""
    module = module.double()
    parameters = list(module.parameters())
    loss = F.cross_entropy(module(images.double()), labels)
    gradient = torch.cat([part.flatten() for part in torch.autograd.grad(loss, parameters, create_graph=True)])
    rows = [torch.cat([part.flatten() for part in torch.autograd.grad(one, parameters, retain_graph=True)]) for one in gradient]
    hessian = torch.stack(rows)
    module.float()
    return {"trace": hessian.trace()[None], "top": torch.linalg.eigvalsh(hessian)[-1:]}


def write(name, file):
    path = HERE / f"{name}-expected.safetensors"
    save_file({name: value.contiguous() for name, value in file.items()}, path)
    path.chmod(0o644)
    print(path.name, path.stat().st_size)


def state(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def checkpoints():
    torch.manual_seed(0)
    legacy = dict(_use_new_zipfile_serialization=False)
    labels = torch.tensor([1, 0, 2])
    parallel = lambda own: {f"module.{name}": value for name, value in own.items()}
    cases = {
        # name: module, images, what is saved, how
        "resnet20.th": (CifarResNet(3, 3, 2, 3), (3, 8, 8), lambda own: {"state_dict": parallel(own), "best_prec1": 12.5}, legacy),
        "resnet32.pth": (CifarResNet(1, 3, 2, 5), (1, 9, 9), lambda own: own, {}),
        "resnet18.pth": (TorchvisionResNet(3, 3, 2, [2, 2, 2, 2], False), (3, 32, 32), lambda own: own, {}),
        "resnet50.pt": (TorchvisionResNet(3, 3, 1, [3, 4, 6, 3], True), (3, 33, 33), lambda own: {
            "model": own, "optimizer": {"state": {0: {"momentum_buffer": torch.ones(3)}}}, "epoch": 3}, {}),
        "vit_cifar10_smmk47.pth": (TorchVit(2, 8, 3, 4, 16, 2, 8, 12), (2, 8, 8), lambda own: {"model_state_dict": own}, {}),
        "vit_mnist.bin": (ResidualVit(1, 6, 3, 3, 8, 2, 8, 6, 5), (1, 6, 6), lambda own: own, legacy),
    }
    for name, (module, shape, saved, how) in cases.items():
        roughen(module)
        torch.save(saved(state(module)), HERE / name, **how)
        images = torch.randn(3, *shape)
        file = answers(module, images, labels)
        write(name.split(".")[0], file | curvature(module, images, labels) if name == "vit_mnist.bin" else file)
    # The same numbers in other types and formats.
    module = roughen(CifarResNet(3, 3, 2, 3))
    for name, dtype in [("half", torch.float16), ("bfloat", torch.bfloat16), ("double", torch.float64)]:
        torch.save({key: value.to(dtype) for key, value in state(module).items()}, HERE / f"{name}.pt")
    rounded = {key: value.to(torch.bfloat16).float() if value.is_floating_point() else value for key, value in state(module).items()}
    save_file({key: value.to(torch.bfloat16) for key, value in rounded.items() if value.is_floating_point()}, HERE / "bfloat.safetensors")
    images = torch.randn(2, 3, 8, 8)
    for name, dtype in [("half", torch.float16), ("bfloat", torch.bfloat16), ("double", torch.float64)]:
        again = CifarResNet(3, 3, 2, 3)
        again.load_state_dict({key: value.to(dtype).float() for key, value in state(module).items()})
        write(name, answers(again.eval(), images, labels[:2], gradients=False))
    # A network nobody knows.
    torch.save({"some.weight": torch.ones(2, 2), "some.bias": torch.ones(2)}, HERE / "unknown.pt")


def tokenizer(folder, special):
    """A byte-level BPE of a few merges, with RoBERTa's or GPT-2's special tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from tokenizers.processors import RobertaProcessing
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    texts = ["the film is good", "the film is bad", "a good good film"]
    trainer = trainers.BpeTrainer(vocab_size=40, special_tokens=special, show_progress=False)
    made.train_from_iterator(texts, trainer)
    if "<s>" in special:
        made.post_processor = RobertaProcessing(("</s>", made.token_to_id("</s>")), ("<s>", made.token_to_id("<s>")), add_prefix_space=False)
    made.save(str(folder / "tokenizer.json"))
    return made


TEXTS = ["the film is good", "a bad bad film is a bad bad film is bad", "good"]


def hugging_face():
    torch.manual_seed(1)
    names = {0: "negative", 1: "neutral", 2: "positive"}
    common = dict(num_labels=3, id2label=names, label2id={name: at for at, name in names.items()}, attn_implementation="eager")
    roberta = RobertaConfig(
        vocab_size=40, max_position_embeddings=14, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
        type_vocab_size=2, layer_norm_eps=1e-3, pad_token_id=1, hidden_act="gelu_new", **common)
    gpt2 = GPT2Config(
        vocab_size=40, n_positions=12, n_embd=8, n_layer=2, n_head=2, n_inner=12, pad_token_id=0, bos_token_id=0, eos_token_id=0,
        layer_norm_epsilon=1e-3, activation_function="gelu", **common)
    vit = ViTConfig(
        hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, image_size=8, patch_size=4, num_channels=3,
        layer_norm_eps=1e-3, **common)
    for name, make, config, special in [
        ("roberta", RobertaForSequenceClassification, roberta, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]),
        ("gpt2", GPT2ForSequenceClassification, gpt2, ["<|endoftext|>"]),
        ("vit", ViTForImageClassification, vit, None),
    ]:
        folder = HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        module = roughen(make(config))
        # RoBERTa in shards, the others in one file.
        module.save_pretrained(folder, max_shard_size="4KB" if name == "roberta" else "5GB")
        labels = torch.tensor([1, 0, 2])
        if special is None:
            mean, std = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]
            (folder / "preprocessor_config.json").write_text(json.dumps(dict(
                do_normalize=True, do_rescale=True, image_mean=mean, image_std=std, size=dict(height=8, width=8))))
            pictures = torch.rand(3, 3, 8, 8)
            scale = lambda x: (x - torch.tensor(mean).reshape(-1, 1, 1)) / torch.tensor(std).reshape(-1, 1, 1)
            class Scaled(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inner = module
                def forward(self, x):
                    return self.inner(pixel_values=scale(x)).logits
            file = answers(Scaled().eval(), pictures, labels)
            file = {key.replace("grad.inner.", "grad."): value for key, value in file.items()}
        else:
            made = tokenizer(folder, special)
            made.enable_truncation(12)
            module = module.double()
            file = {"labels": labels.byte()}
            ids = [made.encode(text).ids for text in TEXTS] + [made.encode(TEXTS[0], TEXTS[2]).ids]
            # GPT-2's classifier reads the last token that is not padding.
            ids.append(ids[0] + [0, 0] if name == "gpt2" else ids[0])
            outputs = [module(input_ids=torch.tensor([own])).logits[0] for own in ids]
            for at, own in enumerate(ids):
                file[f"ids.{at}"] = torch.tensor(own).byte()
            file["outputs"] = torch.stack(outputs).detach()
            F.cross_entropy(torch.stack(outputs[:3]), labels).backward()
            grads = {key: p.grad for key, p in module.named_parameters() if p.grad is not None}
            file |= {f"grad.{key}": grad for key, grad in grads.items()}
            # Noise on the embedding of the second token, where the embeddings are handed to the layers.
            noise = torch.randn(8)
            place = module.roberta.embeddings if name == "roberta" else module.transformer.drop
            def touch(_, __, output):
                output = output.clone()
                output[:, 1] += noise.double()
                return output
            hook = place.register_forward_hook(touch)
            with torch.no_grad():
                file |= {"noise": noise, "touched": module(input_ids=torch.tensor([ids[0]])).logits[0]}
            hook.remove()
        write(name, file)
    # The same without the prefix of the body.
    folder = HERE / "vit-bare"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(HERE / "vit" / "config.json", folder)
    with safe_open(HERE / "vit" / "model.safetensors", "pt") as whole:
        bare = {key.removeprefix("vit."): whole.get_tensor(key) for key in whole.keys()}
    save_file(bare, folder / "model.safetensors")


if __name__ == "__main__":
    torch.set_num_threads(1)
    HERE.mkdir(exist_ok=True)
    checkpoints()
    hugging_face()
    for path in HERE.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
