"""What each instruction, kernel and source line costs: FLOPs and bytes."""
