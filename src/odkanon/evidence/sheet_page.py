"""The evidence sheet as a self-contained HTML page that prints on two pages of A4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from odkanon.evidence.attacks import ATTACKS

_STYLE = """
@page { size: A4; margin: 12mm 14mm; }
body { font: 13px/1.4 system-ui, sans-serif; margin: 1.5rem auto; max-width: 52rem; padding: 0 1rem; color: #1a1a1a; }
h1 { font-size: 1.5rem; margin: .4rem 0; } h2 { font-size: 1.05rem; margin: .9rem 0 .2rem; }
p { margin: .25rem 0; }
table { border-collapse: collapse; width: 100%; margin: .3rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: .2rem .4rem; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; }
.notice { background: #8b0000; color: #fff; padding: .4rem .7rem; font-weight: 600; }
.private { color: #8b0000; font-size: .8em; font-weight: 400; }
.verdict { font-weight: 600; white-space: nowrap; }
.clean { color: #1b5e20; } .found { color: #b71c1c; } .to-weigh, .not-settled { color: #7a4f01; }
.sign { display: flex; gap: 2rem; margin-top: 2.2rem; }
.sign div { flex: 1; border-top: 1px solid #1a1a1a; padding-top: .2rem; font-size: .9em; }
code { font-size: .9em; overflow-wrap: anywhere; }
@media print {
  body { font-size: 9.4px; line-height: 1.3; margin: 0; max-width: none; padding: 0; }
  h1 { font-size: 16px; } h2 { font-size: 11.5px; margin: 6px 0 1px; break-after: avoid; }
  td, th { padding: 1.5px 4px; } tr, .sign { break-inside: avoid; } .sign { margin-top: 26px; }
  .notice { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
"""


def page(content: Mapping[str, Any]) -> str:
    """Return the sheet as HTML."""
    name = escape(str(content["release"]["name"]))
    parts = [
        f'<p class="notice">{escape(content["notice"])}</p>',
        f"<h1>Evidence on the release {name}</h1>",
        *_released(content),
        *_attacks(content["attacks"]),
        *_questions(content["questions"]),
        *_sampling(content["sampling"]),
        *_policy(content["policy"]),
        *_digests(content),
        '<div class="sign"><div>Name and office</div><div>Signature</div><div>Place and date</div></div>',
    ]
    meta = f'<meta charset="utf-8"><title>Evidence on {name}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{meta}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"


def _table(rows: Iterable[Iterable[str]], headings: Iterable[str] = ()) -> str:
    top = "".join(f"<th>{heading}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{f'<tr>{top}</tr>' if top else ''}{body}</table>"


def _heading(text: str, *, private: bool = False) -> str:
    mark = ' <span class="private">not for publication</span>' if private else ""
    return f"<h2>{text}{mark}</h2>"


def _released(content: Mapping[str, Any]) -> list[str]:
    release, trips = content["release"], content["trips"]
    published = release["published"] or {}
    parameters = ", ".join(f"{name} {value}" for name, value in (release["parameters"] or {}).items())
    most = (release["unlisted"] or {}).get("at_most_trips")
    persons = "" if trips["persons"] is None else f" of {trips['persons']:,} persons"
    return [
        _heading("What was released, and the promise"),
        f"<p><strong>{escape(str(release['statement']))}</strong></p>",
        f"<p>{published.get('classes', 0):,} rows between {published.get('origins', 0):,} origin and "
        f"{published.get('destinations', 0):,} destination zones, by {escape(str(release['method']))} "
        f"({escape(parameters) or 'no options'}); {published.get('trips', 0):,} trips"
        + ("" if most is None else f", and at most {most:,} that are in no row")
        + ".</p>",
        f"<p>Made of {trips['trips']:,} trips{persons} in {escape(trips['name'])}. "
        '<span class="private">not for publication</span></p>',
    ]


def _attacks(attacks: Iterable[Mapping[str, Any]]) -> list[str]:
    rows = [
        (
            f"<strong>{escape(each['title'])}</strong><br>{escape(each['asks'])}",
            f'<span class="verdict {each["verdict"].replace(" ", "-")}">{each["verdict"]}</span>'
            + (f"<br>{each['tried']:,} of {each['of']:,}" if each["of"] and each["tried"] < each["of"] else ""),
            escape(each["message"]),
        )
        for each in attacks
    ]
    return [_heading("Attacks that were made", private=True), _table(rows, ("attack", "outcome", "what came out"))]


def _questions(questions: Iterable[Mapping[str, Any]]) -> list[str]:
    rows = [
        (
            f"<strong>{escape(each['question'].capitalize())}</strong>",
            escape(each["answer"]),
            "<br>".join(_answer(one) for one in each["attacks"]),
        )
        for each in questions
    ]
    return [_heading("Three questions of the Article 29 working party (opinion 05/2014)", private=True), _table(rows)]


def _answer(one: Mapping[str, Any]) -> str:
    """Return the verdict on an attack, with its most important number."""
    outcome = f"{escape(one['title'])}: {one['verdict']}"
    return outcome if one["value"] is None else f"{outcome} ({escape(one['number'])}: {one['value']:.4g})"


def _sampling(found: Mapping[str, Any] | None) -> list[str]:
    if found is None:
        return []
    return [_heading("What sampling adds", private=True), f"<p>{escape(found['words'])}</p>"]


def _policy(policy: Mapping[str, Any] | None) -> list[str]:
    if policy is None:
        return [_heading("Policy"), "<p>No policy was given.</p>"]
    if policy["kept"]:
        return [_heading("Policy"), f'<p class="clean">{escape(policy["name"])} is kept.</p>']
    lines = "".join(f"<li>{escape(line)}</li>" for line in policy["broken"])
    return [_heading("Policy"), f'<p class="found">{escape(policy["name"])} is broken:</p><ul>{lines}</ul>']


def _digests(content: Mapping[str, Any]) -> list[str]:
    rows = [(escape(name), f"<code>{digest}</code>") for name, digest in content["release"]["sha256"].items()]
    rows += [(f"compared with {escape(each['name'])}", f"<code>{each['sha256']}</code>") for each in content["earlier"]]
    rows.append((f"trips ({escape(content['trips']['name'])})", f"<code>{content['trips']['sha256'] or '-'}</code>"))
    made = ", ".join(f"{name} {number}" for name, number in content["versions"].items() if number)
    others = [
        attack.title
        for attack in ATTACKS.values()
        if attack.name not in {each["attack"] for each in content["attacks"]}
    ]
    left = f"<p>Not made: {escape(', '.join(others))}.</p>" if others else ""
    return [_heading("Versions and digests (SHA-256)"), f"<p>{escape(made)}</p>", left, _table(rows)]
