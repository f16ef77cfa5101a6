"""Studies: methods, thresholds and drop orders side by side, and the information lost by a release."""
