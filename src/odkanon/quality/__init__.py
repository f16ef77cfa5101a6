"""The quality of a release: utility, accuracy, privacy, and lower bounds for any release."""
