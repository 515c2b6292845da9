"""Files that hold no table that can be read: what they are, and what to do with them."""

from __future__ import annotations

import re
import zipfile

_AS_TABLE = "save the table as CSV or .xlsx"
_UNPACK = "unpack it, and name the table in it"
_OF_R = (
    "is a file of R: read it there, and save it by write.csv(x, 'x.csv', row.names = FALSE) or "
    "arrow::write_parquet(x, 'x.parquet')"
)

# The first bytes of files of other kinds.
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (
        b"SQLite format 3\x00",
        "is an SQLite database: let its name end in .db, and name the table as file.db::table",
    ),
    (b"%PDF-", f"is a PDF file: open it, and {_AS_TABLE}"),
    (b"{\\rtf", f"is an RTF text: open it, and {_AS_TABLE}"),
    (b"\x89PNG", "is a picture, not a table: a folder of pictures becomes a table by itself"),
    (b"\xff\xd8\xff", "is a picture, not a table: a folder of pictures becomes a table by itself"),
    (b"GIF8", "is a picture, not a table: a folder of pictures becomes a table by itself"),
    (b"\x89HDF", f"is an HDF5 file: open it with the program that wrote it, and {_AS_TABLE}"),
    (b"MATLAB ", f"is a file of MATLAB: open it there, and {_AS_TABLE} by writetable"),
    (b"RDX", _OF_R),
    (b"RDA", _OF_R),
    (b"X\n\x00\x00\x00", _OF_R),
    (b"\x80\x03", "is a pickle of Python: load it there, and save the frame by to_parquet"),
    (b"\x80\x04", "is a pickle of Python: load it there, and save the frame by to_parquet"),
    (b"\x80\x05", "is a pickle of Python: load it there, and save the frame by to_parquet"),
    (b"7z\xbc\xaf", f"is a 7z archive: {_UNPACK}"),
    (b"Rar!", f"is a RAR archive: {_UNPACK}"),
    (b"\x28\xb5\x2f\xfd", f"is packed by zstd: {_UNPACK}"),
    (b"\xfd7zXZ", f"is packed by xz: {_UNPACK}"),
    (b"BZh", f"is packed by bzip2: {_UNPACK}"),
    (b"Obj\x01", f"is an Avro file: open it with the program that wrote it, and {_AS_TABLE}"),
    (b"ORC", f"is an ORC file: open it with the program that wrote it, and {_AS_TABLE}"),
)
_MARKUP = (
    (
        re.compile(rb"(<!--.*?-->\s*)?<(!doctype html|html|head|body|table)\b", re.I | re.S),
        f"is a web page: open it in a spreadsheet program, and {_AS_TABLE}",
    ),
    (
        re.compile(rb"<\?xml\b|<[A-Za-z][\w:.-]*(\s[^>]*)?>\s*<"),
        f"is XML: open it in a spreadsheet program, and {_AS_TABLE}",
    ),
)
_TEXTS = (
    (
        re.compile(rb"(\s*%[^\n]*\n|\s)*@relation\s", re.I),
        f"is an ARFF file of Weka: open it there, and {_AS_TABLE}",
    ),
    (
        re.compile(rb".{0,400}SPSS PORT FILE", re.S),
        "is a portable file of SPSS: open it there, and save it as .sav",
    ),
)
_IN_ARCHIVES = (
    ("word/document.xml", f"is a Word document: copy the table into a sheet, and {_AS_TABLE}"),
    ("ppt/presentation.xml", f"is a presentation: copy the table into a sheet, and {_AS_TABLE}"),
    ("Index/Document.iwa", "is a file of Numbers: open it there, and export it to Excel or CSV"),
    ("Index.zip", "is a file of Numbers: open it there, and export it to Excel or CSV"),
)
BINARY = "is a binary file, not a table that can be read: save the table as CSV, .xlsx or Parquet"
_IGNORED = re.compile(r"(^|/)(__MACOSX/|\.DS_Store$|\._|Thumbs\.db$|desktop\.ini$)")


def refuse_other_kinds(content: bytes) -> None:
    """Raise a ValueError if bytes are those of a file that is no table, and say what to do."""
    for signature, sentence in _SIGNATURES:
        if content.startswith(signature):
            raise ValueError(sentence)
    if re.match(rb"A\n[23]\n\d+\n", content):
        raise ValueError(_OF_R)
    start = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    for pattern, sentence in (*_MARKUP, *_TEXTS):
        if pattern.match(start):
            raise ValueError(sentence)


def entries_of(archive: zipfile.ZipFile) -> list[str]:
    """Return the files in an archive without those that systems add."""
    names = [name for name in archive.namelist() if not name.endswith("/")]
    for entry, sentence in _IN_ARCHIVES:
        if entry in names:
            raise ValueError(sentence)
    return [name for name in names if _IGNORED.search(name) is None]
