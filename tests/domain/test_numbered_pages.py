from hypothesis import given
from hypothesis import strategies as st

from storage.domain.numbered_pages import NumberedPage


@given(st.integers(0, 300), st.integers(1, 100))
def test_a_walk_by_next_num_sees_all_and_leads_back(total: int, per_page: int) -> None:
    seen, number, before = 0, 1, None
    while True:
        items = range(seen, min(total, seen + per_page))
        page = NumberedPage(items, number, per_page, total)
        seen += len(items)
        assert page.prev_num == before
        assert page.next_num in {None, number + 1}
        if page.next_num is None:
            break
        before, number = number, page.next_num
    assert seen == total
    assert page.pages == (number if total else 0)
