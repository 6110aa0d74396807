"""The leak lint: does anything public reveal the hidden labels?

Every public file is reduced to views: columns of written values, the order of rows, ids, names
and metadata of files, the bytes of files beside the tables. One measure (`strength`) says how
well a view predicts the labels and how likely chance alone would do as well. Content that
should be on one side only is compared by hashed values (`rows`, `files`, `bundled`). A
combination of columns that predicts the label is a model and not a leak, so the lint does not
test combinations.
"""

from reward_server.tasks.leaks.lint import check_leaks

__all__ = ["check_leaks"]
