"""What repeats at the top level of a cell or script: recorded, found, and cut into functions that get compiled."""
