"""Tables of the log database: the durable tail, the manifest of flushed segments, scores.

They share one database because a flush must publish a segment and forget the tail's rows in one
transaction: that is what lets a reader see each log once.
"""

import sqlalchemy as sa

log_metadata = sa.MetaData()

_NO = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
