"""BigQuery: one GROUP BY in a project. Not tested against the service."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from sqlglot import exp

from sharewell.engine.base import (
    CloudEngine,
    SourceColumn,
    if_written,
    is_nan_test,
    missing_driver,
    refuse_password,
    require_columns,
    table_of,
    within,
)
from sharewell.errors import SourceError

#: The types of the catalogue, as sqlglot spells them; TIMESTAMP is a moment, DATETIME has no time zone.
TYPES = {
    **dict.fromkeys(("INTEGER", "INT64"), "bigint"),
    **dict.fromkeys(("FLOAT", "FLOAT64"), "double"),
    **dict.fromkeys(("NUMERIC", "BIGNUMERIC"), "decimal"),
    **dict.fromkeys(("BOOLEAN", "BOOL"), "boolean"),
    "STRING": "text",
    "DATE": "date",
    "DATETIME": "timestamp",
    "TIMESTAMP": "timestamptz",
}


class BigQuery(CloudEngine):
    """A table of a BigQuery dataset. Its jobs cannot be confined to reading: give it a role that can."""

    dialect = "bigquery"

    @classmethod
    def open(cls, address: str, table: str | None, wanted: Sequence[str], timeout: float) -> BigQuery:
        """Connect to bigquery://project/dataset, with the application's default credentials."""
        refuse_password(address, "use the application's default credentials")
        parts = urlsplit(address)
        dataset = parts.path.strip("/")
        name = table_of(table, cls.dialect).name
        if not parts.netloc or not dataset or "/" in dataset:
            raise SourceError(
                "The address of a BigQuery dataset is not complete.",
                hint="Write bigquery://project/dataset.",
            )
        client, rows = _client(parts.netloc, timeout), None
        with suppress(Exception):
            found = within(timeout, lambda: client.get_table(f"{parts.netloc}.{dataset}.{name}"))
            # A repeated field is a list.
            rows = [
                (each.name, "" if each.mode == "REPEATED" else each.field_type) for each in found.schema
            ]
        relation = exp.table_(name, db=dataset, catalog=parts.netloc, quoted=True)
        return cls(client, relation, require_columns(rows, table), wanted, timeout)

    @staticmethod
    def describe(name: str, type_: str) -> SourceColumn:
        """Describe a column; an empty collation compares text byte by byte."""
        value: exp.Condition = exp.column(name, quoted=True)
        if type_ == "STRING":
            value = exp.Anonymous(this="COLLATE", expressions=[value, exp.Literal.string("")])
        return SourceColumn(name, exp.DataType.build(TYPES.get(type_, "unknown")), value)

    def run(self, sql: str) -> Sequence[Sequence[Any]]:
        """Run a statement."""
        from google.cloud.bigquery import QueryJobConfig

        config = QueryJobConfig(use_query_cache=False, job_timeout_ms=int(self.timeout * 1000))
        self._job = self._client.query(sql, job_config=config)
        return [tuple(row.values()) for row in self._job.result(timeout=self.timeout)]

    def version(self) -> str | None:
        """Return when the table was modified."""
        found = self._client.get_table(
            f"{self.relation.catalog}.{self.relation.db}.{self.relation.name}"
        )
        return None if found.modified is None else str(found.modified)

    def cancel(self) -> None:
        """Stop the job that runs."""
        with suppress(Exception):
            self._job.cancel()

    def adapt(self, node: exp.Expression) -> exp.Expression:
        """Return what stands for a node in BigQuery's dialect."""
        match node:
            case exp.TryCast():
                return if_written(node, node.copy())
            case exp.EQ() if is_nan_test(node):
                return exp.Anonymous(this="IS_NAN", expressions=[node.this])
        return node


def _client(project: str, timeout: float) -> Any:
    try:
        from google.cloud import bigquery
    except ImportError:
        raise missing_driver("bigquery") from None
    client = None
    with suppress(Exception):
        client = within(min(timeout, 60.0), lambda: bigquery.Client(project=project))
    if client is None:
        raise SourceError(
            "Cannot connect to BigQuery.",
            hint="Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS.",
        )
    return client
