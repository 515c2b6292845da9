"""The data sets of the papers, for the benchmarks: `papers/paper_data.py`, which is not in the package."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "papers"))

from paper_data import CATALOGUE, data_folder, dataset_names, load_dataset

__all__ = ["CATALOGUE", "data_folder", "dataset_names", "load_dataset"]
