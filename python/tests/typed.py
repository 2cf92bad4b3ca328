"""What a type checker must see; checked by mypy and pyright, never run."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import pudica as pu

f = pu.boolean("majority", n=21)
assert_type(f, pu.Boolean)
assert_type(f.average_sensitivity, float)
assert_type(f.influences, NDArray[np.float64])
assert_type(f.fourier(), NDArray[np.float64])
assert_type(f.analysis(["degree"]), dict[str, Any])

r = pu.measure(lambda x: x[:, 0], np.zeros((3, 2)), nudge=pu.PatchNoise(size=4, variance=[0.1, 1.0]), response="label", precision=0.005)
assert_type(r, pu.Measurement)
assert_type(r.mean, pu.Estimate)
assert_type(r.ci95, tuple[float, float] | None)
assert_type(r.by_site, NDArray[np.float64])
assert_type(r.results[0], pu.Result)

s = pu.run("hahn/length-scaling", n=[4, 6, 8], seed=range(3))
assert_type(s, pu.Sweep)
assert_type(s.runs[0], pu.Run)
assert_type(s.figure("fig1"), pu.Figure)

h = pu.hessian(None, lambda outputs, targets: outputs, [])
assert_type(h.trace, pu.Estimate)
assert_type(pu.sharpness(None, lambda outputs, targets: outputs, []), pu.Estimate)
