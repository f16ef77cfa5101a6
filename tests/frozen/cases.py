"""Commands whose output files must not change while code moves; each runs in one folder, in this order."""

from __future__ import annotations

CELLS = "861fb4667ffffff,861fb4677ffffff,861fb466fffffff,861fb4647ffffff,861fb475fffffff"

SMALL = """
sample -o survey.parquet
sample -o gnss --as netmob25
anonymize survey.parquet -o default
anonymize survey.parquet -o default-duckdb --engine duckdb
anonymize survey.parquet -o flat --method odkanon --protect participants
anonymize survey.parquet -o before --suppress before
anonymize survey.parquet -o oigh --method oigh
anonymize survey.parquet -o atg --method atg-soft
anonymize survey.parquet -o mondrian --method mondrian
anonymize survey.parquet -o treecut --method treecut --iterations 20 --within {cells}
anonymize survey.parquet -o freezones --method freezones --iterations 20 --within {cells}
anonymize survey.parquet -o cascade --method cascade
anonymize survey.parquet -o cascade-duckdb --method cascade --engine duckdb
anonymize survey.parquet -o persons --method cascade --protect persons --resolution 8
anonymize survey.parquet -o persons-duckdb --method cascade --protect persons --resolution 8 --engine duckdb
anonymize survey.parquet -o cube-persons --by mode --protect persons --resolution 7 --engine duckdb
anonymize survey.parquet -o fine --method cascade --substeps
anonymize survey.parquet -o allowed --method cascade --allow-inference --coarsest 6
anonymize survey.parquet -o population --protect participants --protect population --protect persons
anonymize survey.parquet -o besides --protect persons --max-share 0.5 --min-destinations 2
anonymize survey.parquet -o women --filter 'sex == "Woman" and age >= 18' --resolution 8
anonymize survey.parquet -o square --symmetric --resolution 9
anonymize survey.parquet -o cube --by mode --by hour:0-7,7-9,9-17,17-20,20-24
anonymize survey.parquet -o cube-duckdb --by mode --by hour:0-7,7-9,9-17,17-20,20-24 --engine duckdb
anonymize survey.parquet -o segments --segment sex --segment age --resolution 8
anonymize survey.parquet -o intervals --segment sex --protect-intervals --resolution 7
anonymize survey.parquet -o onzones --zones flat
anonymize survey.parquet -o onrows --zones cascade
anonymize survey.parquet -o refused --k 100000
anonymize survey.parquet -o wrong --method odkanno
anonymize nothing.csv -o missing
audit default cascade --trips survey.parquet -o audit.json
audit cube -o audit-cube.json
series flat onzones -o changes
view cube -o cars --where 'mode == "car"'
export default --to geojson -o exported-geojson
export default --to flowmap -o exported-flowmap
export cascade --to skmob -o exported-skmob
report default cascade -o both.html
report default --full
netmob25 gnss -o cut.csv
rerun default.recipe.json
"""

QUICK = {
    *("survey.parquet", "default", "flat", "before", "oigh", "persons-duckdb", "onzones", "changes"),
    *("exported-geojson", "refused", "wrong", "missing"),
}
"""What the commands write that every run of the tests tries; `make test-slow` tries all."""

LARGE = """
anonymize survey.parquet -o default-spark --engine spark
anonymize survey.parquet -o cascade-spark --method cascade --engine spark
anonymize survey.parquet -o cube-spark --by mode --by hour --engine spark
compare survey.parquet -o compared --methods odkanon,oigh --resolution 8
explain default --trips survey.parquet -o explained.html
evidence default --trips survey.parquet -o evidence
"""

GOLDEN = """
anonymize {golden}/{case}/od.csv -o golden-{case} --k 5 --suppress before
anonymize {golden}/{case}/od.csv -o golden-{case}-cascade --k 5 --method cascade
anonymize {golden}/{case}/od.csv -o golden-{case}-atg --k 5 --method atg-soft
"""

GIVEN = """
anonymize {path} -o given-{number}
anonymize {path} -o given-{number}-cascade --method cascade
anonymize {path} -o given-{number}-duckdb --method cascade --engine duckdb
"""


def lines(text: str, **values: object) -> list[str]:
    """Return the commands of a block, with their placeholders filled in."""
    return [line.format(cells=CELLS, **values) for line in text.strip().splitlines()]


def quick(commands: list[str]) -> list[str]:
    """Return the commands that write something of `QUICK`."""
    return [command for command in commands if command.partition(" -o ")[2].split(" ")[0] in QUICK]
