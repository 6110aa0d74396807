"""A new task: a copy of the skeleton beside this file, under another id.

The skeleton is one folder deeper than the server searches, so it is no task itself.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from reward_server.errors import SetupError
from reward_server.tasks.folders import find_folders, is_task_id

SKELETON = Path(__file__).parent / "new_task"
_ID = "new-task"


def write_task(task_id: str, directory: Path) -> Path:
    """Write the folder of a new task into a directory and return it.

    Raises:
        SetupError: when the id is no id or is taken, or the folder is there already.
    """
    if not is_task_id(task_id):
        message = f"{task_id!r} is no id of a task: use lower-case words joined by hyphens"
        raise SetupError(message)
    folder = directory / task_id.replace("-", "_")
    taken = find_folders([directory]).get(task_id)
    if folder.exists() or taken is not None:
        message = f"there is a task {task_id} already, in {taken or folder}"
        raise SetupError(message)
    shutil.copytree(SKELETON, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in folder.iterdir():
        path.write_text(path.read_text(encoding="utf-8").replace(_ID, task_id), encoding="utf-8")
    return folder
