"""Tables as they are met in the wild, small, with some of their labels hidden."""

from __future__ import annotations

import numpy as np
import pandas as pd


def wild_table(kind: str, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Return a table with holes in its column "target", and that column without them."""
    rng = np.random.default_rng(seed)
    frame, signal, share = MAKERS[kind](rng)
    frame["target"] = signal
    truth = frame["target"].copy()
    hidden = rng.permutation(len(frame))[int(share * len(frame)) :]
    frame["target"] = frame["target"].astype(object if truth.dtype.kind not in "f" else float)
    frame.loc[frame.index[hidden], "target"] = np.nan if truth.dtype.kind == "f" else None
    return frame, truth


def _mixed(rng):
    n = 90
    city, size = rng.choice(["Köln", "Bonn", "Ulm"], n), rng.uniform(20, 200, n)
    frame = pd.DataFrame(
        {
            "id": np.arange(n) + 1000,
            "Größe m²": [f"{value:.1f}" for value in size],
            "Ort": city,
            "gebaut": pd.Series(pd.date_range("1990-01-01", periods=n, freq="73D")).dt.strftime(
                "%d.%m.%Y"
            ),
            "rooms": np.where(rng.random(n) < 0.2, np.nan, np.round(size / 25)),
            "rent": [f"{value:,.0f} EUR" for value in 100 * size],
            "Straße": [f"{rng.choice(['Haupt', 'Berg', 'See'])}str. {k % 50}" for k in range(n)],
        }
    )
    return frame, size * 3 + 40 * (city == "Köln") + rng.normal(0, 5, n), 0.6


def _two_classes(rng):
    n = 80
    X = rng.normal(size=(n, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(flag=rng.random(n) < 0.5, empty=None)
    return frame, np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, "yes", "no").astype(object), 0.5


def _many_classes(rng):
    n = 120
    X = rng.normal(size=(n, 2))
    code = (X[:, 0] > 0).astype(int) * 3 + np.digitize(X[:, 1], [-0.5, 0.5])
    return pd.DataFrame(X, columns=["a", "b"]), np.array(list("uvwxyz"), dtype=object)[code], 0.6


def _thirty_categories(rng):
    n = 150
    level = rng.integers(0, 30, n)
    frame = pd.DataFrame({"shop": [f"shop {k}" for k in level], "x": rng.normal(size=n)})
    return frame, rng.normal(size=30)[level] * 3 + frame["x"].to_numpy(), 0.5


def _wide(rng):
    X = rng.normal(size=(74, 60))
    return pd.DataFrame(X, columns=[f"f{j}" for j in range(60)]), X[:, 0] * 2 + X[:, 1], 0.6


def _text(rng):
    n = 100
    good, bad, rest = (
        ["lovely", "great", "superb"],
        ["awful", "broken", "poor"],
        ["the", "it", "box", "came", "and"],
    )
    label = rng.random(n) < 0.5
    texts = [
        " ".join([*rng.choice(good if kind else bad, 3), *rng.choice(rest, 5)]) for kind in label
    ]
    return pd.DataFrame({"review": texts}), np.where(label, 1.0, 0.0), 0.5


def _long(rng):
    X = rng.normal(size=(10_000, 2))
    return pd.DataFrame(X, columns=["a", "b"]), X[:, 0] - X[:, 1] ** 2, 0.02


MAKERS = {
    "mixed": _mixed,
    "two classes": _two_classes,
    "many classes": _many_classes,
    "30 categories": _thirty_categories,
    "60 columns": _wide,
    "text": _text,
    "10,000 rows": _long,
}
