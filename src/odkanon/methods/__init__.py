"""The methods: functions from a matrix and a rule to a release. `method_registry` lists and runs them."""

from odkanon.methods.method_registry import METHODS, Method, anonymize

__all__ = ["METHODS", "Method", "anonymize"]
