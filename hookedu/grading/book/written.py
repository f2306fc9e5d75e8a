"""The table of grades.db that holds what learners wrote, so that it can be compared later, when the folder is gone.

    written       one row per attempt whose notebook could be read; deleted with the attempt
        source, attempt, cells (zlib of JSON, {"cells": [[source, [exercise, ...]], ...], "left_out": number})

Only the cells that the learner added or changed are kept, and of one attempt at most rows.MOST_WRITTEN characters. Of a
usual submission that is about one KiB on disk.
"""

import json
import sqlite3
import zlib

from hookedu.grading.rows import Row, Written

TABLE = """
CREATE TABLE written (
    source TEXT NOT NULL, attempt INTEGER NOT NULL, cells BLOB NOT NULL, PRIMARY KEY (source, attempt),
    FOREIGN KEY (source, attempt) REFERENCES submissions ON DELETE CASCADE
);
"""


def save(transaction: sqlite3.Connection, row: Row, attempt: int) -> None:
    """Write the cells of a row that is being saved as this attempt."""
    if row.written is not None:
        text = json.dumps(vars(row.written), ensure_ascii=False)
        packed = zlib.compress(text.encode())
        transaction.execute("INSERT INTO written VALUES (?, ?, ?)", (row.source, attempt, packed))


def load(connection: sqlite3.Connection, row: Row) -> Written | None:
    """Return the cells of an attempt, None if there are none in the gradebook."""
    query = "SELECT cells FROM written WHERE source = ? AND attempt = ?"
    found = connection.execute(query, (row.source, row.attempt)).fetchone()
    if not found:
        return None
    node = json.loads(zlib.decompress(found[0]))
    cells = ((source, tuple(exercises)) for source, exercises in node["cells"])
    return Written(tuple(cells), node["left_out"])
