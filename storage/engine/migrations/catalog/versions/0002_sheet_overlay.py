"""Sheets get an overlay of patches; snapshots may share a manifest and count what there is to fold."""

import sqlalchemy as sa
from alembic import op

from storage.engine.schema import patches, snapshots

revision = "0002_sheet_overlay"
down_revision = "0001_first_release"
branch_labels = None
depends_on = None

_ADDED = ("manifest_no", "patches", "overlay_cells", "overlay_bytes", "part_count")


def upgrade() -> None:
    # a home made by this release has them from the first revision on
    bind = op.get_bind()
    held = {column["name"] for column in sa.inspect(bind).get_columns("snapshots")}
    for name in _ADDED:
        if name not in held:
            op.add_column("snapshots", sa.Column(name, snapshots.c[name].type))
    patches.create(bind, checkfirst=True)


def downgrade() -> None:
    patches.drop(op.get_bind())
    for name in _ADDED:
        op.drop_column("snapshots", name)
