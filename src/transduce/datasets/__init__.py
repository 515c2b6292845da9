"""The papers' data sets, from a folder, from OpenML or bundled with scikit-learn."""

from transduce.datasets.catalogue import CATALOGUE
from transduce.datasets.loading import Dataset, data_folder, dataset_names, load_dataset

__all__ = ["CATALOGUE", "Dataset", "data_folder", "dataset_names", "load_dataset"]
