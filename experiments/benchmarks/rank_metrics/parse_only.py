"""The floor: a process that only reads the three columns that scoring needs, with polars or with pyarrow."""

from __future__ import annotations

import argparse

COLUMNS = ["question", "iteration", "document", "rank", "score", "name"]


def with_polars(path: str) -> int:
    import polars as pl

    return pl.read_csv(path, separator=" ", has_header=False, quote_char=None, columns=[0, 2, 4], schema_overrides={
        "column_1": pl.String, "column_3": pl.String, "column_5": pl.Float64}).height


def with_pyarrow(path: str) -> int:
    import pyarrow as pa
    from pyarrow import csv

    types = {"question": pa.string(), "document": pa.string(), "score": pa.float64()}
    return csv.read_csv(path, csv.ReadOptions(column_names=COLUMNS), csv.ParseOptions(delimiter=" ", quote_char=False),
                        csv.ConvertOptions(include_columns=list(types), column_types=types)).num_rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=("polars", "pyarrow"))
    parser.add_argument("run")
    given = parser.parse_args()
    print((with_polars if given.tool == "polars" else with_pyarrow)(given.run))
