"""The evidence sheet as a self-contained HTML page that prints on two pages of A4."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from html import escape
from typing import Any

from odkanon.evidence.attacks import ATTACKS
from odkanon.evidence.sheet import DECIDE, DO_NOT_PUBLISH, MAY_BE_PUBLISHED
from odkanon.release_format.names import MANIFEST

STYLE = """
@page { size: A4; margin: 11mm 13mm; }
body { font: 13px/1.4 system-ui, sans-serif; margin: 1.5rem auto; max-width: 54rem; padding: 0 1rem; color: #1a1a1a; }
h1 { font-size: 1.5rem; margin: .3rem 0; } h2 { font-size: 1.05rem; margin: .9rem 0 .2rem; }
p { margin: .25rem 0; } ul, ol { margin: .2rem 0; padding-left: 1.3rem; }
table { border-collapse: collapse; width: 100%; margin: .3rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: .2rem .4rem; text-align: left; vertical-align: top; }
th { font-weight: 600; font-size: .9em; } td.number, th.number { text-align: right; white-space: nowrap; }
.notice { color: #8b0000; font-size: .85em; }
.private { color: #8b0000; font-size: .8em; font-weight: 400; }
.box { border: 2px solid; border-radius: 4px; padding: .4rem .8rem; margin: .5rem 0; }
.box strong.word { font-size: 1.3em; text-transform: uppercase; letter-spacing: .03em; }
.box li { margin: .15rem 0; } .box small { color: #555; } .box p, .box li { color: #1a1a1a; }
.decision { float: right; color: #555; }
.verdict { font-weight: 600; white-space: nowrap; }
.clean, .pass { color: #1b5e20; } .found, .fail { color: #b71c1c; }
.to-weigh, .not-settled, .not-made, .review { color: #7a4f01; }
table.attacks td:first-child { width: 29%; } table.attacks td:nth-child(2) { width: 11%; }
tr.own td { background: #eef3ee; font-weight: 600; }
.columns { columns: 2; column-gap: 1.6rem; } .columns li { break-inside: avoid; }
.sign { display: flex; gap: 2rem; margin-top: 2.4rem; }
.sign div { flex: 1; border-top: 1px solid #1a1a1a; padding-top: .2rem; font-size: .9em; }
code { font-size: .9em; overflow-wrap: anywhere; }
.line { border-bottom: 1px dotted #888; display: inline-block; max-width: 100%; }
.wide { overflow-x: auto; } @media (max-width: 40rem) { .columns { columns: 1; } }
@media print {
  body { font-size: 9.8px; line-height: 1.27; margin: 0; max-width: none; padding: 0; }
  h1 { font-size: 17px; } h2 { font-size: 11.5px; margin: 6px 0 1px; break-after: avoid; }
  td, th { padding: 1px 4px; } tr, .sign, .box, .approval { break-inside: avoid; } .sign { margin-top: 30px; }
  .box, tr.own td { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
"""
_COLOURS = {MAY_BE_PUBLISHED: "pass", DECIDE: "review", DO_NOT_PUBLISH: "fail"}
_BLANK = '<span class="line" style="width: {}em">&nbsp;</span>'


def page(content: Mapping[str, Any]) -> str:
    """Return the sheet as HTML."""
    name = escape(str(content["release"]["name"]))
    parts = [
        f"<h1>May the release {name} be published?</h1>",
        f'<p class="notice">{escape(content["notice"])}</p>',
        *_verdict(content["verdict"]),
        *_promise(content),
        *([] if content["input"] is None else [*_rule(content), *_noise(content.get("noise")), *_input(content)]),
        *_policy(content["policy"]),
        *_attacks(content["attacks"], (content["policy"] or {}).get("decided", ())),
        *(_questions(content["questions"]) if content["questions"] else []),
        *_sampling(content["sampling"]),
        *_not_promised(content["not_promised"]),
        *_digests(content),
        *_approval(content),
    ]
    meta = f'<meta charset="utf-8"><title>May {name} be published?</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{meta}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"


def _table(rows: Iterable[Iterable[str]], headings: Iterable[str] = (), kind: str = "") -> str:
    top = "".join(f"<th>{heading}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table class="{kind}">{f"<tr>{top}</tr>" if top else ""}{body}</table>'


def _heading(text: str, *, private: bool = False) -> str:
    mark = ' <span class="private">not for publication</span>' if private else ""
    return f"<h2>{text}{mark}</h2>"


def _verdict(found: Mapping[str, Any]) -> list[str]:
    word, lines = found["verdict"], ""
    if found["stops"]:
        lines = f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in found['stops'])}</ul>"
    if found["points"]:
        boxes = '<span class="decision">&#9744; yes &nbsp; &#9744; no</span>'
        listed = "".join(
            f"<li>{boxes}{escape(each['question'])}<br><small>{escape(each['because'])}</small></li>"
            for each in found["points"]
        )
        lines += ("<p>Also to decide:</p>" if found["stops"] else "") + f"<ol>{listed}</ol>"
    if word == MAY_BE_PUBLISHED:
        lines = "<p>No attack broke the promise, and the policy leaves nothing open.</p>"
    return [f'<div class="box {_COLOURS[word]}"><strong class="word">{word}</strong>{lines}</div>']


def _promise(content: Mapping[str, Any]) -> list[str]:
    release = content["release"]
    published, most = release["published"] or {}, (release["unlisted"] or {}).get("at_most_trips")
    options = ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in (release["parameters"] or {}).items())
    period = release.get("period") or {}
    days = " ".join(
        f"{name} {period[day]}" for name, day in (("from", "since"), ("until before", "until")) if day in period
    )
    return [
        _heading("What is promised to everybody in the data"),
        f"<p><strong>{escape(str(release['statement']))}</strong></p>",
        *([f"<p>{escape(content['in_words'])}</p>"] if content["in_words"] else []),
        f"<p>Published: {published.get('classes', 0):,} flows between {published.get('origins', 0):,} zones of origin "
        f"and {published.get('destinations', 0):,} of destination, with {published.get('trips', 0):,} trips"
        + ("" if most is None else f"; at most {most:,} more are in no flow")
        + (f". Trips {escape(days)}" if days else "")
        + f". Method: {escape(str(release['method']))} ({escape(options) or 'no options'}).</p>",
    ]


def _noise(found: Mapping[str, Any] | None) -> list[str]:
    """Return how accurate the release is beside noise, if that was asked for."""
    if found is None:
        return []
    lines = [_heading("How accurate noise would be", private=True)]
    if found["reason"]:
        return [*lines, f"<p>Not compared: {escape(found['reason'])}.</p>"]
    sizes = list(found["rows"][0]["cpc"])
    rows = ([escape(row["name"]), *(f"{row['cpc'][size]:.2f}" for size in sizes)] for row in found["rows"])
    about = (
        "Overlap of the flows between squares with the trips, from 0 to 1 (CPC). Noise (differential privacy) is "
        f"the mean of {found['draws']} draws. What is sure of all draws:"
    )
    sentences = "".join(f"<li>{escape(text)}</li>" for text in found["sentences"]) or "<li>nothing</li>"
    return [*lines, _table(rows, ["", *map(escape, sizes)]), f"<p>{about}</p><ul>{sentences}</ul>"]


def _rule(content: Mapping[str, Any]) -> list[str]:
    policy, found = content["policy"] or {}, content["choices"] or {"choices": [], "reason": "it was not computed"}
    asked, reason = policy.get("asked_by"), policy.get("reason")
    lines = [
        _heading("Who asked for this rule, and why this k", private=True),
        f"<p>Asked for by: {escape(asked) if asked else _BLANK.format(24)} &nbsp; "
        f"Because: {escape(reason) if reason else _BLANK.format(26)}</p>",
    ]
    if found["reason"]:
        return [*lines, f"<p>What another k would mean is not shown: {escape(found['reason'])}.</p>"]
    squares = list(dict.fromkeys(name for each in found["choices"] for name in each.get("right", {})))
    headings = [
        "k",
        "flows",
        "trips published",
        *(f"right between places of {name}" for name in squares),
        "outsider picks the right person",
        "largest share of one person in a flow",
    ]
    cells = (("".join(f"<td>{cell}</td>" for cell in _choice(each, squares)), each["own"]) for each in found["choices"])
    rows = "".join(f"<tr{' class=own' if own else ''}>{row}</tr>" for row, own in cells)
    top = "".join(f"<th>{heading}</th>" for heading in headings)
    explained = (
        "The same request with another k. Right: the overlap of the flows with the input, 100% if all agree. Outsider: "
        "shown one person in the data and one who is not, how often the right one is picked; 50% is tossing a coin."
    )
    return [*lines, f'<div class="wide"><table><tr>{top}</tr>{rows}</table></div>', f"<p>{explained}</p>"]


def _choice(one: Mapping[str, Any], squares: Iterable[str]) -> list[str]:
    if "refusal" in one:
        return [str(one["k"]), escape(one["refusal"])]
    return [
        f"{one['k']}{' (this release)' if one['own'] else ''}",
        f"{one['flows']:,}",
        f"{one['share']:.1%}",
        *(_share(one["right"].get(name)) for name in squares),
        _share(one["outsider"]),
        _share(one["largest"]),
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _input(content: Mapping[str, Any]) -> list[str]:
    given, trips = content["input"], content["trips"]
    rejected = "; ".join(f"{part['rows']:,} {escape(why)}" for why, part in given["rejected"].items()) or "none"
    read = (
        ""
        if given["rows"] is None
        else f"Read: {given['rows']:,} rows of {escape(trips['name'])}. Rejected: {rejected}. "
    )
    persons = "" if trips["persons"] is None else f" of {trips['persons']:,} persons"
    left = trips["trips"] - trips["listed"] if given["suppressed"] is None else given["suppressed"]["trips"]
    share = left / trips["trips"] if trips["trips"] else 0.0
    out = f"Left out of the release, because too few share them: {left:,} trips ({share:.1%})."
    out = out if left else "Every trip is in the release."
    return [
        _heading("What was read, and what was left out", private=True),
        f"<p>{read}Counted: {trips['trips']:,} trips{persons}. {out} Households: {_households(content)}</p>",
    ]


def _households(content: Mapping[str, Any]) -> str:
    given, least = content["input"], (content["release"]["rule"] or {}).get("households")
    if least:
        return f"at least {least:,} different ones share every flow."
    if given["households"] is None:
        return "the trips do not name them, so several persons of a flow may live together."
    few = given.get("few_households")
    of_few = "." if few is None else f"; {few['below']:,} of {few['of']:,} flows have fewer than {few['k']:,} of them."
    price = few["price"] if few and few["price"] else ""
    return f"{given['households']:,} in the input, not protected by this rule{of_few} {escape(price)}"


def _attacks(attacks: Iterable[Mapping[str, Any]], decided: Collection[str]) -> list[str]:
    rows = [
        (
            f"<strong>{escape(each['title'])}</strong> ({each['question']})<br>{escape(each['asks'])}",
            f'<span class="verdict {each["verdict"].replace(" ", "-")}">{_outcome(each)}</span>'
            + (f"<br>{each['tried']:,} of {each['of']:,}" if each["of"] and each["tried"] < each["of"] else "")
            + ("<br>decided by the policy" if each["attack"] in decided and each["verdict"] != "found" else ""),
            escape(each["message"]),
        )
        for each in attacks
    ]
    legend = (
        "Clean: everything was tried and nothing found. Found: a promise is broken. To weigh: something that the "
        "promise never ruled out. Not settled: neither shown nor ruled out in the given time."
    )
    return [
        _heading("Attacks that were made", private=True),
        f"<p>{legend}</p>",
        _table(rows, ("attack (risk)", "outcome", "what came out"), "attacks"),
    ]


def _outcome(attack: Mapping[str, Any]) -> str:
    """Return the outcome of an attack, and whether it is only for comparison."""
    known = ATTACKS.get(attack["attack"])
    compared = known is not None and known.decision is None and attack["verdict"] == "to weigh"
    return "for comparison" if compared else str(attack["verdict"])


def _questions(questions: Iterable[Mapping[str, Any]]) -> list[str]:
    rows = [(f"<strong>{escape(each['question'].capitalize())}</strong>", escape(each["answer"])) for each in questions]
    title = (
        "Three risks that European data protection authorities ask about (Article 29 working party, opinion 05/2014)"
    )
    return [_heading(title, private=True), _table(rows)]


def _sampling(found: Mapping[str, Any] | None) -> list[str]:
    if found is None:
        return []
    return [_heading("What sampling adds", private=True), f"<p>{escape(found['words'])}</p>"]


def _policy(policy: Mapping[str, Any] | None) -> list[str]:
    if policy is None:
        return [_heading("Policy"), "<p>No policy was given (<code>odkanon check --template</code> writes one).</p>"]
    lines = [
        _policy_line(line["outcome"], _plain(line["requirement"]), _plain(line["found"])) for line in policy["lines"]
    ]
    return [_heading(f"Policy of the office: {escape(policy['name'])}"), f'<ul class="columns">{"".join(lines)}</ul>']


def _policy_line(outcome: str, requirement: str, found: str) -> str:
    because = f" ({escape(found)})" if found else ""
    return f'<li><span class="verdict {outcome}">{outcome}</span> {escape(requirement)}{because}</li>'


def _plain(text: str) -> str:
    """Return a line of a policy with the numbers of attacks in words."""
    return text.replace("outsider AUC", "how often an outsider picks the right person")


def _not_promised(lines: Iterable[str]) -> list[str]:
    listed = "".join(f"<li>{escape(each)}</li>" for each in lines)
    return [_heading("What is not promised"), f"<ul>{listed}</ul>"]


def _digests(content: Mapping[str, Any]) -> list[str]:
    digests = content["release"]["sha256"]
    rows = [(escape(name), f"<code>{digest}</code>") for name, digest in digests.items() if name != MANIFEST]
    rows += [(f"compared with {escape(each['name'])}", f"<code>{each['sha256']}</code>") for each in content["earlier"]]
    rows.append((f"trips: {escape(content['trips']['name'])}", f"<code>{content['trips']['sha256'] or '-'}</code>"))
    if content["policy"] is not None:
        rows.append((escape(content["policy"]["name"]), f"<code>{content['policy']['sha256']}</code>"))
    made = ", ".join(f"{name} {number}" for name, number in content["versions"].items() if number)
    others = [
        attack.title
        for attack in ATTACKS.values()
        if attack.name not in {each["attack"] for each in content["attacks"]}
    ]
    left = f"<p>Not made: {escape(', '.join(others))}.</p>" if others else ""
    return [_heading("Versions and digests (SHA-256)"), f"<p>{escape(made)}</p>", left, _table(rows)]


def _approval(content: Mapping[str, Any]) -> list[str]:
    digest, name = content["release"]["sha256"].get(MANIFEST, "-"), escape(str(content["release"]["name"]))
    compared = ", ".join(escape(each["name"]) for each in content["earlier"]) or "none"
    return [
        '<div class="approval">',
        _heading("Approval"),
        f"<p>I approve the publication of the folder <strong>{name}</strong> with the files above, whose {MANIFEST} "
        f"has the SHA-256 <code>{digest}</code>. Tables of the same trips that are or will be "
        f"public beside it: {compared}; others: {_BLANK.format(30)}</p>",
        f"<p>Purpose of the publication: {_BLANK.format(24)} &nbsp; Prepared by: {_BLANK.format(16)}</p>",
        '<div class="sign"><div>Name and office</div><div>Signature</div><div>Place and date</div></div></div>',
    ]
