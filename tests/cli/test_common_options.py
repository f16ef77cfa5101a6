"""What every command has: ``odkanon.toml``, ``--json``, ``--quiet``, exit codes, and tables that fit."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.here import run
from cli.runner import odkanon, output, told
from odkanon import InputError, make_survey
from odkanon.cli.commands import COMMANDS, TOPICS, every_command
from odkanon.cli.common_options import command, describe
from odkanon.cli.console import CommandConsole, make_table
from odkanon.cli.old_names import OLD_COMMANDS

ONE_PERSON = ("--protect", "participants")
DAYS = ("--since", "2022-11-14", "--until", "2022-12-01")
GOLDEN = Path(__file__).parent.parent / "golden/tiny/od.csv"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_options_from_a_file_and_the_command_line_wins(folder: Path) -> None:
    Path("odkanon.toml").write_text(
        'k = 7\nbudget = "0.3"\n[anonymize]\nprotect = ["participants"]\nmethod = "oigh"\n[export]\nto = "geojson"\n'
    )
    done = odkanon("anonymize", GOLDEN, "-o", "out", "--method", "odkanon", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip() == "Read odkanon.toml: budget, k, method, protect"
    about = told(folder / "out")
    assert (about["rule"]["k"], about["method"], about["parameters"]["budget"]) == (7, "odkanon", 0.3)
    Path("mine.toml").write_text("[anonymize]\nmin_trips = 5\n")
    assert run("anonymize", GOLDEN, "-o", "other", "--config", "mine.toml") == 0
    assert told(folder / "other")["rule"]["trips"] == 5


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("kk = 7", "no option .did you mean 'k'"),
        ("[anonymise]\nk = 7", "no command .did you mean 'anonymize'"),
        ("[anonymize]\nonto = 7", "for anonymize, 'onto'"),
        ("k = [7, 8]", "list for k"),
        ("[anonymize]\nforce = 1", "true or false"),
        ("k = 7 8", "cannot be read"),
        ("k = true", "write a text or a number"),
        ("config = 'x.toml'", "no option"),
    ],
)
def test_files_of_options_that_are_wrong(content: str, said: str, folder: Path) -> None:
    Path("odkanon.toml").write_text(content)
    with pytest.raises(InputError, match=said):
        run("anonymize", GOLDEN, "-o", "out")
    assert not (folder / "out").exists()


def test_what_the_file_says_gives_way_to_what_is_typed(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    Path("odkanon.toml").write_text("k = 7\nage-bands = '10,20'\n")
    assert run("anonymize", GOLDEN, "-o", "out", "--min-trips", 4) == 0
    assert told(folder / "out")["rule"]["trips"] == 4
    assert "--k does not apply with --min-trips" in caplog.text
    assert "--age-bands does not apply without --segment" in caplog.text
    recipe = json.loads(Path("out.recipe.json").read_text())
    assert "k" not in recipe["command"]["options"]
    Path("odkanon.toml").write_text("k = 7\nmin-trips = 4\n")
    with pytest.raises(InputError, match="--k does not apply"):
        run("anonymize", GOLDEN, "-o", "again")


def test_one_document_or_nothing(folder: Path) -> None:
    done = odkanon("anonymize", GOLDEN, "-o", "out", "--k", 4, "--json", cwd=folder)
    document = json.loads(done.stdout)
    assert done.returncode == document["exit_code"] == 0
    assert document["result"]["about"] == told(folder / "out")
    assert document["tables"] == []
    asked = odkanon("anonymize", GOLDEN, "-o", "all", "--k", 4, "--json", "--metrics", cwd=folder)
    document = json.loads(asked.stdout)
    assert {table["title"].split()[0] for table in document["tables"]} >= {"Privacy:", "Utility"}
    assert all(len(row) == len(table["columns"]) for table in document["tables"] for row in table["rows"])
    audit = odkanon("audit", "out", "--k", 1000, "--json", cwd=folder)
    assert audit.returncode == json.loads(audit.stdout)["exit_code"] == 1
    assert json.loads(audit.stdout)["result"]["findings"]
    failures = (
        (("anonymize", "nothing.csv", "-o", "x"), 2, "file-missing"),
        (("anonymize", "--nothing"), 2, "usage"),
        (("anonymize", GOLDEN, "-o", "x", "--k", 10**6), 1, "refused"),
        (("anonymize", GOLDEN, "-o", "x", "--column", "persona=ID"), 2, "column-not-found"),
    )
    for words, code, name in failures:
        failed = odkanon(*words, "--json", cwd=folder)
        document = json.loads(failed.stdout)
        assert failed.returncode == document["exit_code"] == code
        assert document["error"]
        assert document["error_code"] == name
    quiet = odkanon("anonymize", GOLDEN, "-o", "out", "--k", 4, "--force", "--quiet", cwd=folder)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    failed = odkanon("anonymize", "nothing.csv", "-o", "x", "--quiet", cwd=folder)
    assert failed.stdout == ""
    assert failed.stderr.startswith("error: ")


def test_cautions_are_warnings_and_the_lines_of_a_check_are_listed(folder: Path) -> None:
    Path("trips.csv").write_text("origin,destination,person\n" + "a,b,1\nb,a,2\n" * 12)
    Path("zones.csv").write_text("zone,town\na,T\nb,T\n")
    done = odkanon("anonymize", "trips.csv", "-o", "out", "--hierarchy", "zones.csv", *ONE_PERSON, "--json", cwd=folder)
    (caution,) = json.loads(done.stdout)["warnings"]
    assert caution.startswith("2 of 2 flows have fewer than 10 different persons")
    Path("policy.toml").write_text("[rule]\npersons = 10\n")
    check = odkanon("check", "out", "--policy", "policy.toml", "--json", cwd=folder)
    assert check.returncode == 1
    (line,) = json.loads(check.stdout)["result"]["broken"]
    assert "persons" in line


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--protect", "participants", "--by", "mode", "--by", "hour"),
        ("--method", "odkanon", "--protect", "participants"),
        ("--where", "age > 30", "--within", "paris-centre", "--by", "date", *DAYS),
    ],
)
def test_the_summary_has_twenty_lines_of_eighty_characters(options: tuple[str, ...], folder: Path) -> None:
    """Also with rejected rows, cautions, and a column that looks like a weight; metrics only where asked for."""
    survey = make_survey().slice(0, 3_000).to_pandas().rename(columns={"weight": "expansion factor"})
    survey.loc[::7, "start_lat"] = None
    survey.to_csv("survey.csv", index=False)
    done = odkanon("anonymize", "survey.csv", "-o", "out", "--resolution", 8, *options, cwd=folder)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(lines) <= 20, done.stdout
    assert max(map(len, lines)) <= 80, done.stdout
    assert "column 'expansion factor' looks" in output(done)
    assert sum(line.startswith("Next: ") for line in lines) == 1
    assert not {"C_DM", "C_AVG", "(G)"} & {*done.stdout.split()}


def test_every_command_has_them_and_tells_its_exit_codes() -> None:
    code = (
        "import typer; from odkanon.cli import app; group = typer.main.get_command(app)\n"
        "for name, command in group.commands.items():\n"
        "    print(name, command.epilog[:11], *(o for p in command.params for o in p.opts))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == len(COMMANDS)
    for line in lines:
        assert line[1:3] == ["Exit", "codes:"], line
        assert {"--json", "--quiet", "--config"} <= set(line), line


def test_help_begins_with_what_most_people_need() -> None:
    text = odkanon("anonymize", "--help").stdout
    first = text[text.index("─ Options ─") :].split("╰")[0]
    expected = ["--k", "--protect", "--output", "--method", "--by", "--force", "--resolution", "--column", "--where"]
    expected += ["--zoning", "--id", "--parent", "--help"]
    assert [word for line in first.splitlines() for word in line.split()[:4] if word.startswith("--")] == expected
    assert "anonymize --help-all" in text
    assert "─ Method ─" not in text
    everything = odkanon("anonymize", "--help-all").stdout
    assert first in everything
    assert all(panel in everything for panel in ("─ Input: file formats ─", "─ Method ─", "─ Every command ─"))
    assert "--help-all" not in odkanon("demo", "--help").stdout


def test_a_text_describes_parameters() -> None:
    described = describe(
        """
        sources: INPUT...  What to read: trips,
            or a table.
        --output -o DIR  Where to.
        Input: files:
        zones: --zones-of RELEASE  Zones.  [default: none]
        --force  Replace.
        """
    )
    assert list(described) == ["sources", "output", "zones", "force"]
    found = {name: (info.metavar, info.help) for name, info in described.items()}
    assert found["sources"] == ("INPUT...", "What to read: trips, or a table.")
    assert found["output"] == ("DIR", "Where to.")
    assert found["zones"] == ("RELEASE", "Zones.  [default: none]")
    assert found["force"] == (None, "Replace.")
    assert [described[name].rich_help_panel for name in ("output", "zones", "force")] == [None, *["Input: files"] * 2]


def test_every_option_has_help() -> None:
    for name, each in every_command().items():
        assert not [option.name for option in each.params if not option.help], name


def test_a_text_without_its_parameter_is_a_bug() -> None:
    def function() -> None:
        pass

    with pytest.raises(AssertionError, match="has no parameters force"):
        command("--force  Replace.")(function)


def test_commands_are_listed_by_topic() -> None:
    text = odkanon("--help").stdout
    assert all(f"─ {topic} ─" in text for topic in TOPICS)
    assert len(COMMANDS) == 16
    assert all(f"│ {name} " in text for name in COMMANDS)
    assert not any(f"│ {name} " in text for name in OLD_COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell: str, tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-m", "odkanon"]
    shown = subprocess.run([*command, "--show-completion", shell], capture_output=True, text=True, env=environment)
    assert shown.returncode == 0, shown.stderr
    assert "COMPLETE" in shown.stdout
    asked = {
        "bash": {"COMP_WORDS": "odkanon anonymize --prot", "COMP_CWORD": "2"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "odkanon anonymize --prot"},
        "fish": {
            "_TYPER_COMPLETE_ARGS": "odkanon anonymize --prot",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "_TYPER_COMPLETE_WORD_TO_COMPLETE": "--prot",
        },
    }[shell]
    run_in = [sys.executable, "-c", "import sys; sys.argv[0] = 'odkanon'; from odkanon.cli import main; main()"]
    told = subprocess.run(
        run_in,
        capture_output=True,
        text=True,
        env={**environment, "_ODKANON_COMPLETE": f"complete_{shell}", **asked},
        check=False,
    )
    assert "--protect" in told.stdout, told.stderr


@pytest.mark.parametrize("width", [60, 80, 200])
def test_tables_fit_without_cutting_names(width: int) -> None:
    name = "a-release-with-a-name-that-is-rather-long-for-a-table-of-eighty-columns-and-more"
    table = make_table("A title", ("release", *(f"number {n}" for n in range(7))), left=("release",))
    table.add_row(name, *("1,234,567.8" for _ in range(7)))
    terminal = CommandConsole()
    terminal.file = io.StringIO()
    terminal._force_terminal, terminal._width = True, width
    terminal.print(table)
    text = terminal.file.getvalue()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width + 16  # colours take some characters, but no columns


def test_tables_are_plain_when_piped(folder: Path) -> None:
    done = odkanon("anonymize", GOLDEN, "-o", "a-very-" + "long-" * 30 + "name", "--k", 4, "--metrics", cwd=folder)
    assert done.returncode == 0
    assert not {"│", "┃", "─", "\x1b"} & set(done.stdout)
    assert "a-very-" + "long-" * 30 + "name" in done.stdout
    assert "release counted in" in output(done)
