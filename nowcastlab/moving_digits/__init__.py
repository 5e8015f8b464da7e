"""MovingMNIST++: handwritten digits that move, turn, grow, shrink and change their light (Shi et al. 2017).

    from nowcastlab.moving_digits import MovingDigits, generated_test, load_digits

    source = MovingDigits(load_digits(), preset="paper")                        # 3 digits, 64x64, 20 frames
    frames = source.training_batch(seed=7, step=0, batch_size=4)                # float32 (4, 20, 64, 64)
    test = generated_test(source)
    frames = test.batch(range(32))

Nothing is stored. Sequence `index` of `seed` is a function of these two alone, so a resumed run sees what an
uninterrupted one would have seen. Read on in this order: `digits` (where the handwriting comes from), `motion` (what is
random), `render` (how a motion becomes frames), `source` (the whole, and the two test sets).
"""

from nowcastlab.moving_digits.digits import Digits, load_digits
from nowcastlab.moving_digits.motion import PRESETS, Motion, Preset
from nowcastlab.moving_digits.source import MovingDigits, TestSet, generated_test, official_test

__all__ = [
    "PRESETS",
    "Digits",
    "Motion",
    "MovingDigits",
    "Preset",
    "TestSet",
    "generated_test",
    "load_digits",
    "official_test",
]
