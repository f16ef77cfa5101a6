"""What is counted and what is promised: rules, budgets, flows, matrices, releases."""
