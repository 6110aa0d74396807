"""The middle energies of the training materials, for all."""

import numpy as np
import pandas as pd

DATA = "/workdir/nomad2018-predict-transparent-conductors/prepared/public"
ENERGIES = ["formation_energy_ev_natom", "bandgap_energy_ev"]
train = pd.read_csv(f"{DATA}/train.csv")
submission = pd.read_csv(f"{DATA}/test.csv")[["id"]]
for energy in ENERGIES:
    submission[energy] = np.expm1(np.log1p(train[energy]).mean())
submission.to_csv("submission.csv", index=False)
