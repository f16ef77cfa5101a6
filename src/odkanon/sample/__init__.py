"""Made-up surveys."""
