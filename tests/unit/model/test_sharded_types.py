"""Types as JAX writes them where their sharding is a part of them."""

import pytest

from explorer.model.types import bytes_of, parse_type


@pytest.mark.parametrize(
    ("text", "dims", "size"),
    [
        ("f32[1024@data,512]", ("1024@data", "512"), 1024 * 512 * 4),
        ("bf16[32@(data,model),8]", ("32@(data,model)", "8"), 32 * 8 * 2),
        ("f32[256,512]{V:(data,model)}", ("256", "512"), 256 * 512 * 4),
    ],
)
def test_a_split_dimension_has_its_size_and_its_axes(text, dims, size) -> None:
    (array,) = parse_type(text).arrays
    assert (array.dims, bytes_of(text)) == (dims, size)
