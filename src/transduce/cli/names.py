"""The tables of the demo: the column with holes, how many labels stay, and what it is about."""

from __future__ import annotations

TABLES = {
    "diabetes": ("progression", 150, "442 patients, ten measurements: how far the disease goes in a year"),
    "houses": ("price", 150, "400 districts of California in 1990, eight measurements: what a house costs"),
    "breast-cancer": ("diagnosis", 100, "569 tumours, thirty measurements: malignant or benign"),
    "wine": ("cultivar", 60, "178 wines, thirteen measurements: which of three growers"),
    "digits": ("digit", 200, "1,797 images of 64 pixels: which of ten digits"),
}
