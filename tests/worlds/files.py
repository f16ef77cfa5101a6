"""Small files of trips, as people have them."""

from __future__ import annotations

import zipfile
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


def spreadsheet(path: Path, *sheets: list[list[Any]]) -> Path:
    """Write a spreadsheet by hand: as little XML as its readers need."""
    names = [f"xl/worksheets/sheet{at}.xml" for at in range(1, len(sheets) + 1)]
    listed = "".join(f'<sheet name="S{at}" sheetId="{at}" r:id="r{at}"/>' for at in range(1, len(sheets) + 1))
    links = "".join(
        f'<Relationship Id="r{at}" Type="{_OFFICE}/worksheet" Target="{name[3:]}"/>' for at, name in enumerate(names, 1)
    )
    with zipfile.ZipFile(path, "w") as archive:
        top = f'<Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
        archive.writestr("_rels/.rels", f'<Relationships xmlns="{_PACKAGE}/relationships">{top}</Relationships>')
        archive.writestr("[Content_Types].xml", f'<Types xmlns="{_PACKAGE}/content-types"/>')
        archive.writestr(
            "xl/workbook.xml", f'<workbook {_MAIN} xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>'
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>'
        )
        for name, rows in zip(names, sheets, strict=True):
            body = "".join(
                f'<row r="{at}">{"".join(_cell(f"{chr(65 + n)}{at}", value) for n, value in enumerate(row))}</row>'
                for at, row in enumerate(rows, 1)
            )
            archive.writestr(name, f"<worksheet {_MAIN}><sheetData>{body}</sheetData></worksheet>")
    return path


_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def _cell(place: str, value: Any) -> str:
    if isinstance(value, int | float):
        return f'<c r="{place}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
