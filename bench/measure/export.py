"""python export.py CHECKPOINT.th OUT.onnx: ResNet-20 for CIFAR-10 (option A shortcuts) from its state dict, with a dynamic batch."""
import pathlib, sys
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests/golden"))
from foreign import CifarResNet

checkpoint, out = sys.argv[1:]
weights = torch.load(checkpoint, map_location="cpu", weights_only=True)["state_dict"]
network = CifarResNet(3, 10, 16, 3).eval()
network.load_state_dict({name.removeprefix("module."): value for name, value in weights.items()})
batch = {0: torch.export.Dim("batch", min=1, max=65536)}
torch.onnx.export(
    network, (torch.zeros(2, 3, 32, 32),), out, input_names=["image"], output_names=["scores"], dynamic_shapes=(batch,), dynamo=True,
    external_data=False,
)
