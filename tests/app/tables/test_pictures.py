"""Columns of pictures: read from files and bytes, told apart by what they show, and never fatal."""

import base64
import io
import os
import struct
import zlib
from pathlib import PureWindowsPath

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image, ImageDraw
from pyarrow import parquet
from sklearn.datasets import load_digits

from tests.app.tables.noted import texts
from transduce import fill
from transduce.app.filling import fill_folder, load, save
from transduce.app.tables import files
from transduce.app.tables.features import vectorize
from transduce.app.tables.pictures import (
    LENGTH,
    file_below,
    picture_features,
    preview,
    read_pictures,
    small_copy,
)

INKS = [(200, 30, 30), (30, 160, 40), (30, 40, 200)]


def encoded(image, kind="PNG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def drawn(rng, ink, count, turn, side=48):
    """Bars of one colour and orientation, in random places and sizes."""
    image = Image.new("RGB", (side, side), tuple(rng.integers(205, 256, 3).tolist()))
    draw, placed = ImageDraw.Draw(image), []
    while len(placed) < count:
        x, y = rng.uniform(9, side - 9, 2)
        if all((x - u) ** 2 + (y - v) ** 2 > 15**2 for u, v in placed):
            placed.append((x, y))
            size, angle = rng.uniform(4.5, 6.5), turn * np.pi / 3 + rng.normal(0, 0.08)
            along, across = size * np.array([np.cos(angle), np.sin(angle)]), 0.35 * size
            beside = across * np.array([-np.sin(angle), np.cos(angle)])
            corners = [(1, 1), (1, -1), (-1, -1), (-1, 1)]
            draw.polygon(
                [tuple(np.array([x, y]) + a * along + b * beside) for a, b in corners],
                fill=INKS[ink],
            )
    return image


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    """A table of 330 drawn pictures, named by numbers alone, of which 100 have labels."""
    folder, rng = tmp_path_factory.mktemp("shapes"), np.random.default_rng(0)
    (folder / "images").mkdir()
    about = pd.DataFrame(rng.integers(3, size=(330, 3)), columns=["colour", "count", "orientation"])
    about["image"] = [f"images/{k:03d}.png" for k in rng.permutation(330)]
    for ink, count, turn, name in about.itertuples(index=False):
        drawn(rng, ink, count + 1, turn).save(folder / name)
    return folder, about


@pytest.mark.parametrize(
    "kind",
    ["orientation", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("colour", "count"))],
)
def test_what_is_drawn_decides_the_class(shapes, kind):
    folder, about = shapes
    labels = about[kind].map(["a", "b", "c"].__getitem__)
    frame = pd.DataFrame(
        {"image": about["image"], "class": labels.where(np.arange(330) < 100, None)}
    )
    found = fill(frame, "class", method="forest", pictures=str(folder))
    right = np.mean(found.frame["class_filled"][100:] == labels[100:])
    assert right > 0.9
    assert any("330 pictures were read" in note for note in found.notes)


def test_digits_as_files_are_answered_as_well_as_pixels(tmp_path):
    digits, rng = load_digits(), np.random.default_rng(0)
    rows = rng.permutation(len(digits.target))[:300]
    shown = pd.Series(digits.target[rows]).map("d{}".format)
    for k, row in enumerate(rows):
        Image.fromarray((digits.images[row] * 15.9).astype(np.uint8)).save(tmp_path / f"{k}.png")
    labels = shown.where(np.arange(300) < 100, None)
    files_of = pd.DataFrame({"image": [f"{k}.png" for k in range(300)], "y": labels})
    pixels = pd.DataFrame(digits.data[rows]).rename(columns=str).assign(y=labels)
    right = [
        np.mean(
            fill(table, "y", method="forest", pictures=str(tmp_path)).frame["y_filled"][100:]
            == shown[100:]
        )
        for table in (files_of, pixels)
    ]
    assert right[0] > right[1] - 0.02


def test_bytes_and_records_are_read_as_files_are(shapes, tmp_path):
    folder, about = shapes
    some = about[:60].assign(y=np.where(np.arange(60) < 40, about["colour"][:60] * 1.5, np.nan))
    some = some[["image", "y"]]
    contents = [(folder / name).read_bytes() for name in some["image"]]
    records = [{"bytes": one, "path": None} for one in contents]
    parquet.write_table(pa.table({"image": records, "y": some["y"]}), folder / "records.parquet")
    parquet.write_table(pa.table({"image": contents, "y": some["y"]}), folder / "bytes.parquet")
    some.to_csv(folder / "files.csv", index=False)
    links = some.assign(image=[{"bytes": None, "path": name} for name in some["image"]])
    paths = some.assign(image=[PureWindowsPath(name) for name in some["image"]])
    buffers = some.assign(image=[*map(bytearray, contents[:30]), *map(memoryview, contents[30:])])
    in_text = [base64.b64encode(one).decode() for one in contents]
    in_text = some.assign(
        image=[f"data:image/png;base64,{one}" if len(one) % 2 else one for one in in_text]
    )
    more = some.assign(image=[{**one, "width": 64} for one in records])
    tables = [
        files.read(folder / name).frame
        for name in ("records.parquet", "bytes.parquet", "files.csv")
    ]
    tables += [links, paths, buffers, in_text, more]
    found = [vectorize(table, "y", folder=folder).matrix for table in tables]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-9)
    result = fill(files.read(folder / "files.csv"), "y", method="ridge")
    assert result.columns.set_index("name")["kind"]["image"] == "picture"
    assert "1 features" not in result.report()


def test_the_same_in_parts_and_saved_for_later_rows(shapes, tmp_path):
    folder, about = shapes
    y = about["count"] + 0.5 * about["colour"]
    frame = about[["image"]].assign(y=np.where(np.arange(330) < 210, y, np.nan))
    settings = {"method": "ridge", "sample": 100}
    whole = fill(frame, "y", pictures=str(folder), **settings)
    (folder / "parts").mkdir(exist_ok=True)
    for k in range(2):
        frame[165 * k : 165 * (k + 1)].to_parquet(folder / "parts" / f"{k}.parquet")
    fill_folder(str(folder / "parts"), "y", tmp_path / "out", pictures=str(folder), **settings)
    parts = pd.concat([pd.read_parquet(path) for path in sorted((tmp_path / "out").glob("part-*"))])
    np.testing.assert_allclose(parts["y_filled"], whole.new["y_filled"], rtol=1e-9)
    save(tmp_path / "model", frame, "y", pictures=str(folder), **settings)
    later = load(tmp_path / "model").below(folder).new_columns(frame[210:])
    np.testing.assert_allclose(
        later["y_filled"], whole.later_rows.new_columns(frame[210:])["y_filled"], rtol=1e-6
    )


def png_of_size(width, height):
    """The first bytes of a PNG that says it is so large."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


def test_faulty_files_are_counted_and_named(shapes, tmp_path):
    folder, about = shapes
    table, secret = tmp_path / "table", tmp_path / "secret.png"
    table.mkdir()
    good = (folder / about["image"][0]).read_bytes()
    secret.write_bytes(good)
    for k in range(12):
        (table / f"{k}.png").write_bytes((folder / about["image"][k]).read_bytes())
    (table / "cut.png").write_bytes(good[: len(good) // 2])
    (table / "text.png").write_text("no picture")
    (table / "vast.png").write_bytes(png_of_size(60_000, 60_000))
    (table / "big.png").write_bytes(png_of_size(9_300, 9_300))
    (table / "folder.png").mkdir()
    (table / "link.png").symlink_to(secret)
    (table / "inside.png").symlink_to(table / "1.png")
    (table / "circle.png").symlink_to(table / "circle.png")
    os.mkfifo(table / "pipe.png")
    names = [f"{k}.png" for k in range(12)] + ["inside.png", str(table / "2.png"), None]
    names += [
        "cut.png",
        "text.png",
        "vast.png",
        "big.png",
        "folder.png",
        "link.png",
        "circle.png",
        "pipe.png",
    ]
    names += [
        "../secret.png",
        str(secret),
        "https://example.org/a.png",
        "file:///etc/a.png",
        "no\x00.png",
        "gone.png",
        " ",
    ]
    features = vectorize(pd.DataFrame({"image": names}), folder=table)
    said = " ".join(texts(features.notes))
    assert "14 pictures were read" in said
    assert "2 cells cannot be read as pictures: 'cut.png' (row 16), 'text.png' (row 17)" in said
    assert "2 pictures are far too large: 'vast.png' (row 18), 'big.png' (row 19)" in said
    assert "5 files outside the folder were not opened" in said
    assert "5 files are not there" in said
    assert np.isfinite(features.matrix).all()
    assert features.columns["n_missing"][0] == 16
    missing = features.matrix[:, features.names.index("image is missing")]
    np.testing.assert_array_equal(missing[:14] < missing[14:].min(), True)


def test_nothing_to_see_is_left_out(tmp_path):
    frame = pd.DataFrame(
        {
            "image": [f"{k}.png" for k in range(20)],
            "blob": [b"\x00\x01" + bytes([k]) for k in range(20)],
        }
    )
    features = vectorize(frame.assign(x=np.arange(20.0)), folder=tmp_path)
    assert features.columns["treatment"].tolist()[:2] == ["dropped: none could be read"] * 2
    assert set(features.origins) == {"x"}
    assert "20 files are not there: '0.png' (row 1)" in texts(features.notes)[0]
    assert texts(features.notes)[0].endswith(
        "and 15 others. Say below which folder they are with pictures='FOLDER'."
    )
    assert "20 cells cannot be read" in texts(features.notes)[1]
    with pytest.raises(
        ValueError, match=r"nothing to learn from\. 'image': 20 files are not there"
    ):
        fill(frame[["image"]].assign(y=[*range(15), *[None] * 5]), "y", pictures=str(tmp_path))
    empty = [
        {"bytes": None, "path": None},
        {"bytes": encoded(Image.new("L", (9, 9))), "path": None},
    ] * 5
    assert vectorize(pd.DataFrame({"image": empty})).columns["n_missing"][0] == 5


def test_kinds_of_pictures_look_the_same():
    """Orientation, transparency, 16 bits, palettes and formats change what is stored, not what is seen."""
    rng = np.random.default_rng(1)
    image = drawn(rng, 0, 2, 1, side=64)
    plain = small_copy(io.BytesIO(encoded(image))).astype(int)

    def differs(content):
        return np.abs(small_copy(io.BytesIO(content)).astype(int) - plain).mean()

    for kind, options in (
        ("WEBP", {"lossless": True}),
        ("TIFF", {}),
        ("BMP", {}),
        ("GIF", {}),
        ("JPEG", {"quality": 95}),
    ):
        assert differs(encoded(image, kind, **options)) < 4.0
    assert differs(encoded(image.quantize(256))) < 4.0
    turned, exif = image.transpose(Image.Transpose.ROTATE_90), Image.Exif()
    exif[0x0112] = 6  # turn it clockwise to see it upright
    assert differs(encoded(turned, "JPEG", quality=95, exif=exif)) < 4.0
    assert differs(encoded(turned)) > 6.0
    grey = image.convert("L")
    deep = Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)
    seen = small_copy(io.BytesIO(encoded(grey))).astype(int)
    for one in (
        encoded(deep),
        encoded(deep, "TIFF"),
        encoded(Image.fromarray(np.asarray(grey) / np.float32(255)), "TIFF"),
    ):
        assert np.abs(small_copy(io.BytesIO(one)).astype(int) - seen).mean() < (
            1.0 if one[:4] == b"\x89PNG" else 40.0
        )
    ink = Image.new("RGBA", (64, 64), (0, 0, 0, 0))
    ImageDraw.Draw(ink).rectangle((10, 20, 30, 40), fill=(255, 0, 0, 255))
    white = Image.new("RGB", (64, 64), "white")
    ImageDraw.Draw(white).rectangle((10, 20, 30, 40), fill=(255, 0, 0))
    np.testing.assert_array_equal(
        small_copy(io.BytesIO(encoded(ink))), small_copy(io.BytesIO(encoded(white)))
    )
    clear = ink.convert("P")
    assert (
        np.abs(
            small_copy(io.BytesIO(encoded(clear, transparency=clear.getpixel((0, 0))))).astype(int)
            - np.asarray(white)
        ).mean()
        < 4.0
    )


def test_features_by_hand():
    """A grey picture has no tint; upright and lying stripes differ in their directions; one piece is one."""
    stripes = np.zeros((1, 64, 64, 3), dtype=np.uint8)
    stripes[:, :, 20:30] = 255
    both = picture_features(np.concatenate([stripes, stripes.transpose(0, 2, 1, 3)]))
    assert both.shape == (2, LENGTH)
    assert not both[:, 64:96].any()
    directions = both[:, 224:240]
    assert directions[0].argmax() == 0
    assert directions[1].argmax() == 8
    np.testing.assert_array_equal(both[:, 240 + 27 + 4], [1.0, 1.0])  # the root of how many pieces


def test_files_are_read_once_while_they_do_not_change(tmp_path, monkeypatch):
    from transduce.app.tables import pictures

    opened = []
    real = pictures.small_copy
    monkeypatch.setattr(pictures, "small_copy", lambda file: opened.append(file) or real(file))
    rng = np.random.default_rng(2)
    drawn(rng, 0, 1, 0).save(tmp_path / "a.png")
    column, folder = pd.Series(["a.png", "a.png"]), str(tmp_path)
    first, again = read_pictures(column, folder)[0], read_pictures(column, folder)[0]
    assert len(opened) <= 2  # two threads may meet it at once
    np.testing.assert_array_equal(first, again)
    drawn(rng, 1, 3, 1, side=40).save(tmp_path / "a.png")
    assert not np.array_equal(read_pictures(column, folder)[0], first)


def test_a_browser_gets_a_picture_that_it_can_show(tmp_path):
    image = drawn(np.random.default_rng(3), 0, 1, 0)
    image.save(tmp_path / "a.tif")
    for one in (tmp_path / "a.tif", encoded(image, "TIFF")):
        assert preview(one).startswith(b"\x89PNG")
    assert preview(b"no picture") is None
    assert file_below(tmp_path, "a.tif") == tmp_path.resolve() / "a.tif"


def test_without_pillow_pictures_are_refused_in_words(monkeypatch):
    monkeypatch.setattr("transduce.app.tables.pictures.Image", None)
    frame = pd.DataFrame({"photo": ["a.png", "b.png"] * 20, "size": np.arange(40.0)})
    frame["price"] = np.where(np.arange(40) < 30, frame["size"], np.nan)
    with pytest.raises(ValueError, match=r"'photo' holds pictures.*pip install pillow.*ignore="):
        fill(frame, "price")
    assert preview(b"") is None
    assert len(fill(frame, "price", ignore=["photo"]).frame) == 40
