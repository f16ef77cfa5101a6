"""A release on zones of the user's own: a calculation on published numbers, and as safe as they are."""
