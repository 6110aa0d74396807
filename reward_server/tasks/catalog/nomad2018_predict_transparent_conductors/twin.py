"""Made-up alloys of aluminium, gallium and indium with Kaggle's files and a planted signal.

Both energies bend with composition, differently in every space group, so that a linear model
goes part of the way and one that finds the groups and curves goes most of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reward_server.tasks.sdk.raw import write_zip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENERGIES = ["formation_energy_ev_natom", "bandgap_energy_ev"]
SPACEGROUPS = np.array([12, 33, 167, 194, 206, 227])
ATOMS = {12: (20, 40), 33: (40, 80), 167: (30, 60), 194: (10, 80), 206: (40, 80), 227: (40, 80)}
RADII = np.array([0.535, 0.62, 0.80])
ELEMENTS = ("Al", "Ga", "In")
_TEST_ROWS = 60

Numbers: TypeAlias = NDArray[np.float64]


def generate(raw: Path, seed: int, rows: int) -> None:
    """Write train and test tables and geometries, zipped as Kaggle ships them."""
    rng = np.random.default_rng(seed)
    materials = _materials(rng, rows + _TEST_ROWS)
    materials[ENERGIES] = _energies(rng, materials)
    _write(raw, "train", materials.iloc[:rows], rng)
    _write(raw, "test", materials.iloc[rows:].drop(columns=ENERGIES), rng)


def _materials(rng: np.random.Generator, total: int) -> pd.DataFrame:
    groups = rng.choice(SPACEGROUPS, total)
    atoms = np.array([rng.choice(ATOMS[group]) for group in groups])
    metals = 2 * atoms // 5
    shares = rng.dirichlet([0.9, 0.9, 0.9], total)
    aluminium = np.floor(shares[:, 0] * metals) / metals
    gallium = np.floor(shares[:, 1] * metals) / metals
    mixture = np.column_stack([aluminium, gallium, 1 - aluminium - gallium])
    size = 4.2 + 4.5 * mixture @ RADII
    stretch = np.cbrt(atoms / 40)
    lengths = {
        f"lattice_vector_{axis}_ang": size * stretch * scale * rng.normal(1, 0.01, total)
        for axis, scale in ((1, 1.3), (2, 1.0), (3, 1.5))
    }
    angles = {
        f"lattice_angle_{name}_degree": right + 0.1 * rng.normal(size=total)
        for name, right in (
            ("alpha", 90.0),
            ("beta", np.where(groups == 12, 103.0, 90.0)),
            ("gamma", np.where(np.isin(groups, (167, 194)), 120.0, 90.0)),
        )
    }
    composition = dict(zip(("al", "ga", "in"), mixture.T.round(4), strict=True))
    return pd.DataFrame(
        {"spacegroup": groups, "number_of_total_atoms": atoms.astype(float)}
        | {f"percent_atom_{element}": share for element, share in composition.items()}
        | {name: values.round(4) for name, values in (lengths | angles).items()}
    )


def _energies(rng: np.random.Generator, materials: pd.DataFrame) -> Numbers:
    shares = materials[[f"percent_atom_{name}" for name in ("al", "ga", "in")]].to_numpy()
    aluminium, gallium, indium = shares.T
    group = np.searchsorted(SPACEGROUPS, materials["spacegroup"])
    slope = rng.permutation(np.linspace(0.6, 1.4, 6))[group]
    bowing = rng.permutation(np.linspace(-1.0, 2.0, 6))[group]
    offset = rng.permutation(np.linspace(-0.12, 0.12, 6))[group]
    log_gap = (
        0.95 + offset + 0.75 * slope * aluminium - 0.55 * indium - bowing * gallium * indium * 0.6
    )
    instability = rng.permutation(np.linspace(0.2, 1.6, 6))[group]
    log_formation = 0.04 + 0.08 * indium + instability * aluminium * (1 - aluminium) * 0.9
    log_energies = np.column_stack([log_formation, log_gap])
    noise = rng.normal(size=log_energies.shape) * np.array([0.02, 0.06])
    return np.asarray(np.expm1((log_energies + noise).clip(0.001)).round(4))


def _write(raw: Path, side: str, materials: pd.DataFrame, rng: np.random.Generator) -> None:
    table = materials.copy()
    table.insert(0, "id", range(1, len(table) + 1))
    csv = table.to_csv(index=False).encode()
    write_zip(raw / f"{side}.csv.zip", [(f"{side}.csv", csv)])
    write_zip(raw / f"{side}.zip", _geometries(side, table, rng))


def _geometries(
    side: str, table: pd.DataFrame, rng: np.random.Generator
) -> Iterator[tuple[str, bytes]]:
    for row in table.to_dict("records"):
        material = {str(name): value for name, value in row.items()}
        cell = _cell(material)
        atoms = int(material["number_of_total_atoms"])
        metals = 2 * atoms // 5
        shares = [material[f"percent_atom_{name}"] for name in ("al", "ga", "in")]
        counts = np.diff([0, *np.round(np.cumsum(shares) * metals).astype(int)])
        names = [*np.repeat(ELEMENTS, counts), *["O"] * (atoms - metals)]
        places = rng.random((len(names), 3)) @ cell
        yield f"{side}/{material['id']}/geometry.xyz", _xyz(cell, places, names).encode()


def _cell(material: dict[str, float]) -> Numbers:
    """Return the three lattice vectors, the first along x and the second in the xy plane."""
    a, b, c = (material[f"lattice_vector_{axis}_ang"] for axis in (1, 2, 3))
    names = ("alpha", "beta", "gamma")
    degrees = [material[f"lattice_angle_{name}_degree"] for name in names]
    alpha, beta, gamma = np.cos(np.radians(degrees))
    sine = np.sqrt(1 - gamma**2)
    tilt = (alpha - beta * gamma) / sine
    height = np.sqrt(1 - beta**2 - tilt**2)
    return np.array(
        [[a, 0, 0], [b * gamma, b * sine, 0], [c * beta, c * tilt, c * height]], dtype=np.float64
    )


def _xyz(cell: Numbers, places: Numbers, names: list[str]) -> str:
    lines = ["#" + "=" * 55, f"# a made-up crystal of {len(names)} atoms", "#" + "=" * 55]
    lines += ["lattice_vector {:.7f} {:.7f} {:.7f}".format(*vector) for vector in cell]
    lines += [
        "atom {:.7f} {:.7f} {:.7f} ".format(*place) + name
        for place, name in zip(places, names, strict=True)
    ]
    return "\n".join(lines) + "\n"
