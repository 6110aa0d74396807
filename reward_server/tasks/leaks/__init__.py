"""The leak lint: does anything public give the hidden labels away?

What is looked at has a module each: `columns`, `order`, `overlap`, `files`, `sample`,
`bundled`. Each says what it looked at and what it found. A combination of columns that gives
a label away is a model and not a leak, so it is not looked for.
"""

from reward_server.tasks.leaks.lint import find_leaks, look_for_leaks
from reward_server.tasks.leaks.tables import read_table

__all__ = ["find_leaks", "look_for_leaks", "read_table"]
