"""What may go wrong with a function that is compiled: findings with line, evidence and fix."""
