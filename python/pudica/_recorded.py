"""Work on a GPU that is recorded once and replayed (CUDA graphs): of a small network, launching its many kernels takes longer than computing them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

#: Batches of one shape before one is recorded: the first choose algorithms and fill caches.
_FIRST = 3

#: Recordings that are kept: each holds as much memory as the network needs for a batch.
_MOST = 2

#: The stream that recordings are made on, for each device: libraries keep memory for each stream they have seen.
_streams: dict[Any, Any] = {}


class Recorder:
    """Asks functions of one tensor on a GPU, and from some batch on replays what they launched, if that gives the same bits and pays."""

    def __init__(self, torch: Any, model: Any, device: Any) -> None:
        self.torch, self.device = torch, device
        #: Whether nothing is recorded, whatever comes.
        self.refused = not can_be_recorded(torch, model, device)
        #: Batches in a row whose answers were there before they were asked for: the GPU waits for its launches.
        self.idle = 0
        self.seen: dict[Any, int] = {}
        self.recordings: dict[Any, Recording] = {}

    def heard(self, is_there: bool) -> None:
        """An answer is looked at that is there, or has to be waited for."""
        self.idle = self.idle + 1 if is_there else 0

    def ask(self, function: Callable[[Any], Any], given: Any) -> Any:
        """What a function answers to a tensor that lies in pinned memory. It may not be there yet, and is gone once the next is asked."""
        key = (function.__name__, tuple(given.shape), given.dtype)
        if key in self.recordings:
            return self.recordings[key].replay(given)
        sent = given.to(self.device, non_blocking=True)
        self.seen[key] = self.seen.get(key, 0) + 1
        if self.refused or self.idle < _FIRST or self.seen[key] <= _FIRST:
            return function(sent)
        return self.tried(key, function, sent)

    def tried(self, key: Any, function: Callable[[Any], Any], sent: Any) -> Any:
        """What a function answers to a tensor, recorded if it can be. What cannot is not tried again."""
        torch, current = self.torch, self.torch.cuda.current_stream(self.device)
        stream = _streams.setdefault(self.device, torch.cuda.Stream(self.device))
        stream.wait_stream(current)
        self.refused = True
        while len(self.recordings) >= _MOST:
            self.forget(next(iter(self.recordings)))
        try:
            # On the recording's stream, so that what libraries keep for it is there before.
            with torch.cuda.stream(stream), refusing_to_wait(torch):
                answer = function(sent)
            recording = Recording(torch, function, sent, stream)
            if torch.equal(recording.replay(sent), answer):
                self.recordings[key], self.refused = recording, False
                return answer.clone()
            recording.free()
        except Exception:  # it looks at values, or does what a recording cannot hold
            pass
        finally:
            stream.synchronize()
        return function(sent)

    def forget(self, key: Any) -> None:
        """Frees what a recording holds."""
        self.recordings.pop(key).free()
        self.seen[key] = 0

    def forget_all(self) -> None:
        """Frees what recordings hold."""
        for key in list(self.recordings):
            self.forget(key)


class Recording:
    """What a function launched on a GPU, ready to be launched again as one."""

    def __init__(self, torch: Any, function: Callable[[Any], Any], sent: Any, stream: Any) -> None:
        self.given = sent.clone()
        stream.wait_stream(torch.cuda.current_stream(sent.device))
        with torch.cuda.stream(stream):
            # Memory of its own, which is given back with it.
            self.pool: Any = torch.cuda.MemPool()
            self.graph = torch.cuda.CUDAGraph()
            self.graph.capture_begin(pool=self.pool.id, capture_error_mode="thread_local")
            try:
                self.answer: Any = function(self.given)
            finally:
                self.end(torch)
        torch.cuda.current_stream(sent.device).wait_stream(stream)

    def end(self, torch: Any) -> None:
        """Ends the recording, also where it has failed."""
        try:
            self.graph.capture_end()
        except Exception:
            # torch leaves out what would follow.
            with suppress(Exception):
                torch._C._cuda_endAllocateToPool(self.given.device.index, self.pool.id)
            raise

    def replay(self, given: Any) -> Any:
        """The answer to another tensor, which the next replay overwrites."""
        self.given.copy_(given, non_blocking=True)
        self.graph.replay()
        return self.answer

    def free(self) -> None:
        """Gives its memory back."""
        self.answer = None
        self.graph.reset()
        self.pool = None


def can_be_recorded(torch: Any, model: Any, device: Any) -> bool:
    """Whether what a module does may be a fixed list of launches: all on one GPU of NVIDIA's, no hooks to call, not compiled in its own way."""
    if torch.version.cuda is None or not hasattr(torch.cuda, "MemPool"):
        return False
    if any(weight.device != device for weight in [*model.parameters(), *model.buffers()]):
        return False
    foreign = (torch.jit.ScriptModule, torch.nn.DataParallel)
    hooks = ("_forward_hooks", "_forward_pre_hooks")
    return not any(
        isinstance(module, foreign) or hasattr(module, "_orig_mod") or any(getattr(module, name, None) for name in hooks)
        for module in model.modules()
    )


@contextmanager
def refusing_to_wait(torch: Any) -> Iterator[None]:
    """An error where the host would wait for the GPU, which a recording cannot do."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this mode does not see everything
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)
