"""NaN gradients of finite values, found by running pieces of the traced program."""
