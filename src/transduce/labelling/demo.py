"""A table to try the page on: the images of digits that come with scikit-learn, without their labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.ndimage import zoom
from sklearn.datasets import load_digits

from transduce.core.safe_files import whole_file
from transduce.labelling.journal import Label
from transduce.labelling.session import Session

FOLDER = Path("demo-output") / "label-digits"
WANTED = 8


def demo_digits(folder: Path = FOLDER) -> tuple[Path, str, list[str], list[Label]]:
    """Write the table and its images, and return its path, the target, the column shown, and the classes."""
    from matplotlib.image import imsave

    path = folder / "digits.csv"
    classes: list[Label] = list(range(10))
    if not path.exists():
        digits = load_digits()
        order = np.random.default_rng(0).permutation(len(digits.images))
        (folder / "images").mkdir(parents=True, exist_ok=True)
        names = [f"images/{number:04d}.png" for number in range(len(order))]
        for name, image in zip(names, digits.images[order], strict=True):
            imsave(folder / name, zoom(image, 8, order=3), cmap="gray_r", vmin=0, vmax=16)
        pixels = pd.DataFrame(digits.data[order].astype(int), columns=[f"pixel {i}" for i in range(64)])
        table = pd.concat([pd.DataFrame({"image": names}), pixels], axis=1)
        with whole_file(path, force=True) as file:
            file.write(table.to_csv(index=False).encode())
    return path, "digit", ["image"], classes


def begin_demo(session: Session) -> None:
    """Search for one of the digits, in a session that has not said yet what it wants."""
    session.want(WANTED)
    session.propose("find")
