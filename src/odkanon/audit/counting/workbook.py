"""The sheet of a workbook (.xlsx) as CSV, from its XML: the audit's own way."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree
from zipfile import ZipFile

_DATES = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
"""The built-in number formats that are dates or times."""
_EPOCH, _EPOCH_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)


def is_workbook(archive: ZipFile) -> bool:
    """Return whether an archive is a workbook of this format."""
    return "xl/workbook.xml" in archive.namelist()


def workbook_to_csv(archive: ZipFile, target: Path, choose: Callable[[Mapping[str, Sequence[str]]], str]) -> None:
    """Write one of the sheets with a header and rows as CSV, chosen by the headers of all."""
    shared = _shared_texts(archive)
    is_date = _date_styles(archive)
    workbook = archive.read("xl/workbook.xml").decode("utf-8", errors="replace")
    epoch = _EPOCH_1904 if re.search(r"date1904=\"(1|true)\"", workbook) else _EPOCH
    sheets = {
        title: list(_rows(archive, name, shared, is_date, epoch)) for title, name in _sheet_files(archive, workbook)
    }
    filled = {title: rows for title, rows in sheets.items() if len(rows) > 1}
    header, *rows = filled[choose({title: [each.strip() for each in rows[0]] for title, rows in filled.items()})]
    width = len(header)
    with target.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [(row + [""] * width)[:width] for row in (header, *rows) if any(row)]
        )


def _sheet_files(archive: ZipFile, workbook: str) -> Iterator[tuple[str, str]]:
    """Yield the title of each sheet, and the part of the archive that has it."""
    related = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    parts = {each.get("Id"): each.get("Target", "") for each in related}
    for each in ElementTree.fromstring(workbook).iter():
        if _local(each.tag) == "sheet":
            part = parts[next(value for name, value in each.items() if _local(name) == "id")]
            yield each.get("name", ""), part.removeprefix("/") if part.startswith("/") else f"xl/{part}"


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _texts_in(element: ElementTree.Element) -> str:
    """Return the text of an element, without phonetic readings."""
    parts = [part for part in element if _local(part.tag) != "rPh"]
    own = [element.text or ""] if _local(element.tag) == "t" else []
    return "".join([*own, *map(_texts_in, parts)])


def _shared_texts(archive: ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    return [_texts_in(each) for each in ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))]


def _date_styles(archive: ZipFile) -> list[bool]:
    """Return, for each style of a cell, whether its number is a date."""
    if "xl/styles.xml" not in archive.namelist():
        return []
    own: dict[int, bool] = {}
    styles: list[bool] = []
    for part in ElementTree.fromstring(archive.read("xl/styles.xml")):
        if _local(part.tag) == "numFmts":
            for each in part:
                code = re.sub(r'"[^"]*"|\\.|\[[^\]]*\]', "", each.get("formatCode", ""))
                own[int(each.get("numFmtId", "0"))] = bool(re.search("[ymdhs]", code, re.IGNORECASE))
        elif _local(part.tag) == "cellXfs":
            ids = [int(each.get("numFmtId", "0")) for each in part]
            styles = [own.get(each, each in _DATES) for each in ids]
    return styles


def _rows(archive: ZipFile, name: str, shared: list[str], is_date: list[bool], epoch: datetime) -> Iterator[list[str]]:
    with archive.open(name) as file:
        for _, row in ElementTree.iterparse(file):
            if _local(row.tag) != "row":
                continue
            values: list[str] = []
            for cell in row:
                at = _column(cell.get("r", ""))
                values += [""] * ((len(values) if at is None else at) - len(values))
                values.append(_value(cell, shared, is_date, epoch))
            yield values
            row.clear()


def _column(reference: str) -> int | None:
    """Return the position of a cell such as ``AB12``; None if it is not given."""
    letters = re.match("[A-Z]*", reference)
    number = 0
    for letter in letters[0] if letters else "":
        number = 26 * number + ord(letter) - 64
    return number - 1 if number else None


def _value(cell: ElementTree.Element, shared: list[str], is_date: list[bool], epoch: datetime) -> str:
    kind, style = cell.get("t", "n"), int(cell.get("s", "0"))
    if kind == "inlineStr":
        return _texts_in(cell)
    text = next((part.text or "" for part in cell if _local(part.tag) == "v"), "")
    if kind == "s":
        return shared[int(text)]
    if kind == "b":
        return {"1": "True", "0": "False"}.get(text, text)
    if kind == "d":
        return text.replace("T", " ")
    if kind == "n" and text and style < len(is_date) and is_date[style]:
        return str(epoch + timedelta(seconds=round(float(text) * 86_400)))
    return text
