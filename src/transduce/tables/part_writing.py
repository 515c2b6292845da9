"""Writing the parts of a table, batch by batch, with new columns after their own, in the kind they came in."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, BinaryIO

import pandas as pd

from transduce.tables.delimited import field_text
from transduce.tables.parts import LINE, PartFiles

if TYPE_CHECKING:
    import pyarrow as pa


class PartWriter:
    """Writes batches with their new columns, in the kind that the table came in."""

    def __init__(self, file: BinaryIO, files: PartFiles, decimal: str = "point") -> None:
        self._file, self._files, self._decimal = file, files, decimal
        self._writer: Any = None
        self._begun = False

    def write(self, batch: pa.Table, new: pd.DataFrame) -> None:
        """Write some rows."""
        import pyarrow as pa

        if self._files.kind in ("csv", "tsv"):
            self._write_delimited(batch, new)
            return
        additions = pa.Table.from_pandas(new.reset_index(drop=True), preserve_index=False)
        if self._files.kind == "json lines":
            for place, name in enumerate(self._files.by_folder):
                additions = additions.add_column(place, name, batch[name])
            self._write_lines(batch[LINE].to_pylist(), additions)
            return
        for name, column in zip(additions.column_names, additions.columns, strict=True):
            batch = batch.append_column(name, column)
        self._write_parquet(batch)

    def _write_parquet(self, rows: pa.Table) -> None:
        from pyarrow import parquet as pq

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, rows.schema.with_metadata(self._files.metadata))
        self._writer.write_table(rows.cast(self._writer.schema))

    def _write_delimited(self, batch: pa.Table, new: pd.DataFrame) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        delimiter = self._files.style.delimiter
        texts = [[field_text(value, self._decimal) for value in new[name].tolist()] for name in new.columns]
        columns = [*batch.columns, *(pa.array(column, pa.string()) for column in texts)]
        if not self._begun:
            names = pa.array([*batch.column_names, *map(str, new.columns)], pa.string())
            header = delimiter.join(_quoted(names, delimiter).to_pylist())
            self._file.write(f"{header}\n".encode())
            self._begun = True
        fields = [_quoted(column, delimiter) for column in columns]
        lines = pc.binary_join_element_wise(
            *fields, delimiter, null_handling="replace", null_replacement=""
        ).to_pylist()
        self._file.write("".join(f"{line}\n" for line in lines).encode())

    def _write_lines(self, lines: list[str], additions: pa.Table) -> None:
        for line, row in zip(lines, additions.to_pylist(), strict=True):
            start = line.rstrip()[:-1].rstrip()
            values = {name: None if _is_nan(value) else value for name, value in row.items()}
            text = json.dumps(values, ensure_ascii=False)
            self._file.write(f"{start}{'' if start.endswith('{') else ', '}{text[1:]}\n".encode())

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()


def _quoted(texts: Any, delimiter: str) -> Any:
    """Return texts as fields: in quotes where they hold a delimiter, a quote or a line end, and nowhere else."""
    import pyarrow.compute as pc

    needed = pc.match_substring_regex(texts, f'[\\x{ord(delimiter):02x}"\r\n]')
    if not pc.any(needed).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(needed, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
