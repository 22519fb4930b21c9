"""CUDA_VISIBLE_DEVICES is read as CUDA reads it."""

import pytest

from carbonreport.measure.visible import Board, order_doubt, visible

BOARDS = tuple(
    Board(i, f"GPU-{letter * 8}-1111-2222-3333-{letter * 12}", "NVIDIA H200", f"00000000:0{i}:00.0") for i, letter in enumerate("abcd")
)
MIGS = {"MIG-11111111-aaaa-bbbb-cccc-dddddddddddd": BOARDS[1].uuid, "MIG-22222222-aaaa-bbbb-cccc-dddddddddddd": BOARDS[1].uuid}


def indices(value: str | None) -> list[int]:
    return [board.index for board in visible(BOARDS, value, MIGS)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        ("0", [0]),
        ("3,1", [3, 1]),
        (" 2 , 0 ", [2, 0]),
        ("0,0", [0]),
        ("-1", []),
        ("-1,0", []),
        ("0,-1,2", [0]),
        ("0,9,2", [0]),
        ("0,x,2", [0]),
        ("NoDevFiles", []),
        (BOARDS[2].uuid, [2]),
        (BOARDS[2].uuid.upper(), [2]),
        ("GPU-c", [2]),
        ("GPU-cccc,GPU-aaaa", [2, 0]),
        ("GPU-", []),
        ("GPU-e", []),
        (f"MIG-{BOARDS[3].uuid}/1/0", [3]),
        (f"MIG-{BOARDS[3].uuid}/1/0,MIG-{BOARDS[3].uuid}/2/0", [3]),
        ("MIG-11111111-aaaa-bbbb-cccc-dddddddddddd", [1]),
        ("MIG-11111111-aaaa-bbbb-cccc-dddddddddddd,MIG-22222222-aaaa-bbbb-cccc-dddddddddddd", [1]),
        ("MIG-33333333-aaaa-bbbb-cccc-dddddddddddd", []),
    ],
)
def test_the_variable_names_the_boards_that_cuda_would_show(value, expected):
    assert indices(value) == expected


def test_an_ambiguous_prefix_names_no_board():
    twins = (Board(0, "GPU-abc1", "NVIDIA H200", "0"), Board(1, "GPU-abc2", "NVIDIA H200", "1"))

    assert visible(twins, "GPU-abc") == ()
    assert visible(twins, "GPU-abc2") == (twins[1],)


def test_indices_among_different_models_are_in_doubt_unless_the_order_is_set():
    mixed = (Board(0, "GPU-a", "NVIDIA T4", "0"), Board(1, "GPU-b", "NVIDIA H200", "1"))

    doubt = order_doubt(mixed, "0", order_is_pci=False)

    assert doubt is not None and "CUDA_DEVICE_ORDER=PCI_BUS_ID" in doubt
    assert order_doubt(mixed, "0", order_is_pci=True) is None
    assert order_doubt(mixed, "GPU-a", order_is_pci=False) is None
    assert order_doubt(mixed, None, order_is_pci=False) is None
    assert order_doubt(BOARDS, "0", order_is_pci=False) is None
