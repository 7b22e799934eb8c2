"""Filters in Polars: ``pl.col("name").tamis.is_in(filter)``.

>>> import polars as pl
>>> import tamis, tamis.polars
>>> blocked = tamis.build(["evil.example", "spam.example"])
>>> visits = pl.DataFrame({"host": ["good.example", "evil.example", None]})
>>> visits.filter(pl.col("host").tamis.is_in(blocked))["host"].to_list()
['evil.example']

It works in lazy frames as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    import tamis

__all__ = ["Namespace", "build", "is_in"]


def is_in(column: pl.Expr, filter: tamis.Filter, *, threads: int = 1) -> pl.Expr:  # noqa: A002
    """Whether each value of a column may be in the filter; a null is answered with null."""

    def look_up(keys: pl.Series) -> pl.Series:
        found: pl.Series = filter.contains_many(keys, threads=threads)
        return found

    return column.map_batches(look_up, return_dtype=pl.Boolean, is_elementwise=True)


def build(
    frame: pl.DataFrame | pl.LazyFrame, column: str | pl.Expr, **options: object
) -> tamis.Filter:
    """Build the filter of a column's values; options are those of :func:`tamis.build`.

    >>> import polars as pl
    >>> import tamis.polars
    >>> frame = pl.DataFrame({"id": [1, 2, 2, None]})
    >>> len(tamis.polars.build(frame, "id"))
    2
    """
    import tamis

    keys = frame.lazy().select(pl.col(column) if isinstance(column, str) else column).collect()
    return tamis.build(keys.to_series(), **options)  # type: ignore[arg-type]


@pl.api.register_expr_namespace("tamis")
class Namespace:
    """What expressions can do with filters."""

    def __init__(self, column: pl.Expr) -> None:
        """Wrap an expression."""
        self._column = column

    def is_in(self, filter: tamis.Filter, *, threads: int = 1) -> pl.Expr:  # noqa: A002
        """Whether each value may be in the filter; a null is answered with null."""
        return is_in(self._column, filter, threads=threads)
