"""Of the rows that one micro-batch has for a key, the one of the highest revision is written."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lockstep.lake.small_commits import newest

SCHEMA = pa.schema([("user", pa.string()), ("page", pa.string()), ("views", pa.int64()), ("_revision", pa.int64())])
texts = st.sampled_from(["a", "b", None])
# Each machine numbers its rows, so a key has each revision once.
rows = st.dictionaries(st.tuples(texts, texts, st.integers(1, 6)), st.integers(0, 9), max_size=20)


@given(rows)
def test_the_newest_row_of_each_key_is_kept(rows):
    made = [{"user": u, "page": p, "views": views, "_revision": r} for (u, p, r), views in rows.items()]
    expected = {}
    for row in sorted(made, key=lambda row: row["_revision"]):
        expected[row["user"], row["page"]] = row
    kept = newest(pa.Table.from_pylist(made, SCHEMA), ("user", "page"), "_revision").to_pylist()
    assert sorted(kept, key=repr) == sorted(expected.values(), key=repr)
