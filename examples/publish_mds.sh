#!/bin/sh
# From trips of the Mobility Data Specification to a folder for an open data portal, checked, with its catalogue entry:
#   sh publish_mds.sh trips.json release "City of X" https://data.x.org https://creativecommons.org/licenses/by/4.0/ USA
set -eu
trips=$1 release=$2 publisher=$3 homepage=$4 licence=$5 country=$6
odkanon anonymize "$trips" -o "$release" --k 10 --by hour:6-10,10-15,15-19,19-6 --source "$publisher" --licence "$licence"
odkanon audit "$release" --trips "$trips"
odkanon export "$release" --to dcat -o "$release.jsonld" --publisher "$publisher" --homepage "$homepage" \
  --licence "$licence" --country "$country" --date "$(date +%Y-%m-%d)"
