"""Studies of methods: the paper's experiment and trade-offs."""
