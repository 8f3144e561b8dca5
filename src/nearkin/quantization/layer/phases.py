"""Before an `IndexingLayer` trains: rows pass through, then they are collected for the start."""

import torch
from torch import Tensor, nn

PASS, COLLECT, TRAIN = 0, 1, 2


class Phases(nn.Module):
    """Which phase it is and what has been collected, all of it buffers of the `state_dict`.

    `fewest` rows a start needs at least; `wanted` are collected before it.
    """

    progress: Tensor  # (3,) phase, steps taken, rows collected
    _known: int | None = None  # the phase, so that a device is not asked for it in every step
    _steps: int | None = None  # those taken, likewise
    buffer: Tensor  # (wanted, d), empty once training has begun

    def __init__(self, warmup_steps: int, buffer_size: int, *, fewest: int, d: int) -> None:
        super().__init__()
        self.warmup_steps, self.fewest, self.wanted = warmup_steps, fewest, max(buffer_size, fewest)
        self.register_buffer("progress", torch.tensor([PASS if warmup_steps else COLLECT, 0, 0]))
        self.register_buffer("buffer", torch.zeros(0, d))

    @property
    def now(self) -> int:
        if self._known is None:
            self._known = int(self.progress[0])
        return self._known

    def _go_on(self, phase: int) -> None:
        self.progress[0] = self._known = phase

    def count(self) -> int:
        """Count a step of training; returns how many there were since the layer was made."""
        if self._steps is None:
            self._steps = int(self.progress[1])
        self.progress[1] += 1
        self._steps += 1
        return self._steps

    @property
    def seen(self) -> int:
        """Rows collected."""
        return int(self.progress[2])

    def take(self, x: Tensor) -> bool:
        """Count a step on rows x (b, d); returns whether enough are collected to start."""
        self.count()
        if self.now == PASS:
            if self.progress[1] > self.warmup_steps:
                self._go_on(COLLECT)
            else:
                return False
        room = self.wanted - self.seen
        self.buffer = torch.cat([self.buffer, x[:room].to(self.buffer)])
        self.progress[2] = len(self.buffer)
        return len(self.buffer) >= self.wanted

    def rows(self) -> Tensor:
        """What is collected (n, d), on the CPU."""
        return self.buffer.cpu()

    def finish(self) -> None:
        """Training begins; the rows are let go."""
        self._go_on(TRAIN)
        self.buffer = self.buffer.new_zeros(0, self.buffer.shape[1])

    def _load_from_state_dict(self, state: dict, prefix: str, *others: object) -> None:
        self._known = self._steps = None
        kept = state.get(f"{prefix}buffer")
        if kept is not None:  # it grows while rows are collected
            self.buffer = self.buffer.new_zeros(len(kept), self.buffer.shape[1])
        super()._load_from_state_dict(state, prefix, *others)  # type: ignore[arg-type]
