"""Files that shells complete: typer's own completion of paths knows no endings."""

from __future__ import annotations

from pathlib import Path


class Files:
    """The files with some endings, and the folders on the way to them."""

    def __init__(self, *endings: str) -> None:
        self._endings = endings

    def complete(self, incomplete: str) -> list[str]:
        """What a beginning may go on as."""
        folder, _, beginning = incomplete.rpartition("/")
        start = f"{folder}/" if "/" in incomplete else ""
        try:
            found = sorted(Path(start or ".").iterdir())
        except OSError:
            return []
        return [
            f"{start}{path.name}/" if path.is_dir() else f"{start}{path.name}"
            for path in found
            if path.name.startswith(beginning)
            and (beginning.startswith(".") or not path.name.startswith("."))
            and (path.suffix in self._endings or path.is_dir())
        ]


TomlFile = Files(".toml")
LedgerFile = Files(".sqlite", ".db")
TableFile = Files(".csv", ".parquet", ".duckdb", ".db")
