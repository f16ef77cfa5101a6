"""Small files of trips, as people have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

HEADER = "person,sex,start_time,start_lat,start_lon,end_lat,end_lon,weight"


def trips_text(
    rows: int = 48, *, time: str = "2024-07-01 {hour:02}:30:00", sex: tuple[str, str] = ("Woman", "Man")
) -> str:
    """Trips between two places in Paris, one for each hour of two days; every person has one."""
    lines = [
        f"p{n},{sex[n % 2]},{time.format(hour=n % 24, day=1 + n // 24)},48.8566,2.3522,48.86,2.36,{10 + n % 3}"
        for n in range(rows)
    ]
    return "\n".join([HEADER, *lines]) + "\n"


def trips_table(rows: int = 48) -> pa.Table:
    """The same as a table in memory."""
    lines = [line.split(",") for line in trips_text(rows).splitlines()]
    columns: dict[str, Any] = {name: [line[at] for line in lines[1:]] for at, name in enumerate(lines[0])}
    return pa.table(columns)


def write(path: Path, content: str | bytes) -> Path:
    """Write a file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
