"""The leak lint: does anything public give the hidden labels away?

It looks at one column at a time and at the order of rows and ids. A combination of columns
that gives a label away is a model, not a leak, and is not looked for; neither are files other
than the train, test and sample submission tables.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.metrics import adjusted_mutual_info_score, roc_auc_score

from reward_server.tasks.base import TargetKind
