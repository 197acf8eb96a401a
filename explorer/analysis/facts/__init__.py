"""What is most worth knowing of a capture: each finder gives facts that hold, the summary ranks them."""
